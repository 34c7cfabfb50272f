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
// A progressive file may hold thousands of scans, each of which passes over the whole image; encoders write about ten.
constexpr int kMostScans = 100;
void count_scans(j_common_ptr info) {
  if (!info->is_decompressor || reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::strncpy(errors->text, "more than 100 scans", sizeof errors->text - 1);
  std::longjmp(errors->jump, 1);
}

// `pixels` null: only the header. No object with a destructor lives across the jump. Returns "" or what is wrong.
const char* read_jpeg(Bytes file, int64_t most_pixels, ImageSize& size, std::vector<uint8_t>* pixels, JpegErrors& errors) {
  jpeg_decompress_struct info{};
  jpeg_progress_mgr progress{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = fail_jpeg;
  errors.manager.emit_message = warn_jpeg;
  if (setjmp(errors.jump)) {
    jpeg_destroy_decompress(&info);
    return errors.text;
  }
  jpeg_create_decompress(&info);
  progress.progress_monitor = count_scans;
  info.progress = &progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  const bool grey = info.num_components == 1;
  size = {static_cast<int64_t>(info.image_height), static_cast<int64_t>(info.image_width), grey ? 1 : 3};
  const bool known = grey || info.jpeg_color_space == JCS_YCbCr || info.jpeg_color_space == JCS_RGB;
  if (!known || size.height * size.width > most_pixels || pixels == nullptr) {
    jpeg_destroy_decompress(&info);
    return !known ? "a colour space other than grey, YCbCr or RGB" : "";
  }
  info.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  pixels->resize(static_cast<size_t>(size.height * size.width * size.channels));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels->data() + static_cast<size_t>(info.output_scanline) * static_cast<size_t>(size.width * size.channels);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return "";
}

void check_pixels(const ImageSize& size, const std::string& where, int64_t most_pixels) {
  if (size.height * size.width > most_pixels)
    throw DamagedError(fmt::format("{}: {} x {} pixels, more than the {} that are allowed; leave it out or scale it down", where, size.width, size.height, most_pixels));
}

ImageSize decode_jpeg(Bytes file, const std::string& where, int64_t most_pixels, std::vector<uint8_t>* pixels) {
  ImageSize size;
  JpegErrors errors{};
  const std::string wrong = read_jpeg(file, most_pixels, size, pixels, errors);
  if (!wrong.empty()) throw DamagedError(fmt::format("{}: JPEG: {}", where, wrong));
  check_pixels(size, where, most_pixels);
  return size;
}

ImageSize decode_png(Bytes file, const std::string& where, int64_t most_pixels, std::vector<uint8_t>* pixels) {
  std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context{spng_ctx_new(0), spng_ctx_free};
  const auto require = [&](int code, const char* what) {
    if (code != 0) throw DamagedError(fmt::format("{}: PNG {}: {}", where, what, spng_strerror(code)));
  };
  spng_set_crc_action(context.get(), SPNG_CRC_ERROR, SPNG_CRC_ERROR);
  spng_set_chunk_limits(context.get(), size_t{8} << 20, size_t{16} << 20);
  require(spng_set_png_buffer(context.get(), file.data(), file.size()), "buffer");
  spng_ihdr header{};
  require(spng_get_ihdr(context.get(), &header), "header");
  const bool grey = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && header.bit_depth <= 8;
  const ImageSize size{static_cast<int64_t>(header.height), static_cast<int64_t>(header.width), grey ? 1 : 3};
  check_pixels(size, where, most_pixels);
  if (pixels == nullptr) return size;
  const int format = grey ? SPNG_FMT_G8 : SPNG_FMT_RGB8;
  size_t bytes = 0;
  require(spng_decoded_image_size(context.get(), format, &bytes), "size");
  pixels->resize(bytes);
  require(spng_decode_image(context.get(), pixels->data(), bytes, format, 0), "pixels");
  return size;
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

ImageSize image_size(Bytes file, const std::string& where, int64_t most_pixels) {
  if (is_png(file)) return decode_png(file, where, most_pixels, nullptr);
  if (is_jpeg(file)) return decode_jpeg(file, where, most_pixels, nullptr);
  throw DamagedError(fmt::format("{}: neither JPEG nor PNG by its first bytes", where));
}

Image decode_image(Bytes file, const std::string& where, int64_t most_pixels) {
  if (!looks_like_image(file)) throw DamagedError(fmt::format("{}: neither JPEG nor PNG by its first bytes", where));
  Image image;
  const ImageSize size = (is_png(file) ? decode_png : decode_jpeg)(file, where, most_pixels, &image.pixels);
  image.height = size.height, image.width = size.width, image.channels = size.channels;
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
