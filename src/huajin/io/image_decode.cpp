#include "huajin/io/image_decode.h"

#include <fmt/format.h>
#include <spng.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>

#include <jpeglib.h>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands its address back
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};
void fail_jpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->text);
  std::longjmp(errors->jump, 1);
}
// A warning means that data was lost or invented: for training that is damage.
void warn_jpeg(j_common_ptr info, int level) {
  if (level < 0) fail_jpeg(info);
}

// No object with a destructor lives across the jump. Returns "" or what is wrong.
const char* read_jpeg(Bytes file, int64_t most_pixels, Image& image, JpegErrors& errors) {
  jpeg_decompress_struct info;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = fail_jpeg;
  errors.manager.emit_message = warn_jpeg;
  if (setjmp(errors.jump)) {
    jpeg_destroy_decompress(&info);
    return errors.text;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  const bool grey = info.num_components == 1;
  if (!grey && info.jpeg_color_space != JCS_YCbCr && info.jpeg_color_space != JCS_RGB) {
    jpeg_destroy_decompress(&info);
    return "a colour space other than grey, YCbCr or RGB";
  }
  if (static_cast<int64_t>(info.image_width) * info.image_height > most_pixels) {
    jpeg_destroy_decompress(&info);
    return "more pixels than allowed";
  }
  info.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  image.height = info.output_height;
  image.width = info.output_width;
  image.channels = info.output_components;
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = image.pixels.data() + static_cast<size_t>(info.output_scanline) * static_cast<size_t>(image.width * image.channels);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return "";
}

Image decode_png(Bytes file, const std::string& where, int64_t most_pixels) {
  std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context{spng_ctx_new(0), spng_ctx_free};
  const auto require = [&](int code, const char* what) {
    if (code != 0) throw DamagedError(fmt::format("{}: PNG {}: {}", where, what, spng_strerror(code)));
  };
  spng_set_crc_action(context.get(), SPNG_CRC_ERROR, SPNG_CRC_ERROR);
  spng_set_chunk_limits(context.get(), size_t{8} << 20, size_t{16} << 20);
  require(spng_set_png_buffer(context.get(), file.data(), file.size()), "buffer");
  spng_ihdr header{};
  require(spng_get_ihdr(context.get(), &header), "header");
  if (static_cast<int64_t>(header.width) * header.height > most_pixels)
    throw DamagedError(fmt::format("{}: {} x {} pixels, more than the {} that are allowed; leave it out or scale it down", where, header.width, header.height, most_pixels));
  const bool grey = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && header.bit_depth <= 8;
  const int format = grey ? SPNG_FMT_G8 : SPNG_FMT_RGB8;
  size_t size = 0;
  require(spng_decoded_image_size(context.get(), format, &size), "size");
  Image image{static_cast<int64_t>(header.height), static_cast<int64_t>(header.width), grey ? 1 : 3, std::vector<uint8_t>(size)};
  require(spng_decode_image(context.get(), image.pixels.data(), size, format, 0), "pixels");
  return image;
}

bool is_png(Bytes f) { return f.size() >= 8 && std::memcmp(f.data(), "\x89PNG\r\n\x1a\n", 8) == 0; }
bool is_jpeg(Bytes f) { return f.size() >= 3 && std::memcmp(f.data(), "\xff\xd8\xff", 3) == 0; }

// Weight of each source cell in each of `to` cells along one axis.
struct Tap {
  int64_t first;
  std::vector<float> weights;
};
std::vector<Tap> taps(int64_t from, int64_t to) {
  std::vector<Tap> all;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    Tap tap;
    if (scale >= 1) {  // area
      const double begin = static_cast<double>(i) * scale, end = begin + scale;
      tap.first = static_cast<int64_t>(begin);
      for (int64_t j = tap.first; j < from && static_cast<double>(j) < end - 1e-9; ++j)
        tap.weights.push_back(static_cast<float>((std::min(end, static_cast<double>(j + 1)) - std::max(begin, static_cast<double>(j))) / scale));
    } else {
      const double at = std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, static_cast<double>(from - 1));
      tap.first = std::min(static_cast<int64_t>(at), std::max<int64_t>(from - 2, 0));
      const auto part = static_cast<float>(at - static_cast<double>(tap.first));
      tap.weights = from == 1 ? std::vector<float>{1} : std::vector<float>{1 - part, part};
    }
    all.push_back(std::move(tap));
  }
  return all;
}

}  // namespace

bool looks_like_image(Bytes file) { return is_png(file) || is_jpeg(file); }

Image decode_image(Bytes file, const std::string& where, int64_t most_pixels) {
  if (is_png(file)) return decode_png(file, where, most_pixels);
  if (!is_jpeg(file)) throw DamagedError(fmt::format("{}: neither JPEG nor PNG by its first bytes", where));
  Image image;
  JpegErrors errors{};
  const std::string wrong = read_jpeg(file, most_pixels, image, errors);
  if (!wrong.empty()) throw DamagedError(fmt::format("{}: JPEG: {}", where, wrong));
  return image;
}

Image resize_image(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  const std::vector<Tap> rows = taps(image.height, height), columns = taps(image.width, width);
  Image out{height, width, image.channels, std::vector<uint8_t>(static_cast<size_t>(height * width * image.channels))};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < image.channels; ++c) {
        float sum = 0;
        const Tap &r = rows[static_cast<size_t>(y)], &k = columns[static_cast<size_t>(x)];
        for (size_t i = 0; i < r.weights.size(); ++i)
          for (size_t j = 0; j < k.weights.size(); ++j)
            sum += r.weights[i] * k.weights[j] *
                   static_cast<float>(image.pixels[static_cast<size_t>(((r.first + static_cast<int64_t>(i)) * image.width + k.first + static_cast<int64_t>(j)) * image.channels + c)]);
        out.pixels[static_cast<size_t>((y * width + x) * image.channels + c)] = static_cast<uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
      }
  return out;
}

Image with_channels(const Image& image, int64_t channels) {
  if (image.channels == channels) return image;
  const auto n = static_cast<size_t>(image.height * image.width);
  Image out{image.height, image.width, channels, std::vector<uint8_t>(n * static_cast<size_t>(channels))};
  for (size_t i = 0; i < n; ++i) {
    if (channels == 3) {
      for (size_t c = 0; c < 3; ++c) out.pixels[3 * i + c] = image.pixels[i];
    } else {
      const uint8_t* p = &image.pixels[3 * i];
      out.pixels[i] = static_cast<uint8_t>((299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000);
    }
  }
  return out;
}

}  // namespace huajin
