#include "huajin/io/image_set.h"

#include <gtest/gtest.h>
#include <spng.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "huajin/core/errors.h"
#include "huajin/io/image_decode.h"
#include "huajin/io/test_jpeg.h"

namespace huajin {
namespace {
namespace fs = std::filesystem;

std::string png_of(const Image& image) {
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.width = static_cast<uint32_t>(image.width), header.height = static_cast<uint32_t>(image.height), header.bit_depth = 8;
  header.color_type = image.channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
  spng_set_ihdr(context, &header);
  spng_encode_image(context, image.pixels.data(), image.pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  int error = 0;
  void* bytes = spng_get_png_buffer(context, &size, &error);
  std::string file(static_cast<char*>(bytes), size);
  std::free(bytes);
  spng_ctx_free(context);
  return file;
}

Image ramp(int64_t height, int64_t width, int64_t channels, int shift = 0) {
  Image image{height, width, channels, {}};
  for (int64_t i = 0; i < height * width * channels; ++i) image.pixels.push_back(static_cast<uint8_t>((i * 3 + shift) % 251));
  return image;
}

std::string tar_entry(const std::string& name, const std::string& content, char type = '0', bool gnu = false) {
  std::string header(512, '\0');
  header.replace(0, std::min<size_t>(name.size(), 100), name.substr(0, 100));
  std::snprintf(&header[124], 12, "%011o", static_cast<unsigned>(content.size()));
  header[156] = type;
  header.replace(257, 8, gnu ? std::string("ustar  \0", 8) : std::string("ustar\0" "00", 8));
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(&header[148], 7, "%06o", sum);
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

std::string idx_of(std::vector<uint32_t> shape, const std::string& data) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t n : shape)
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(n >> shift);
  return file + data;
}

std::string gzip_of(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data())), stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data()), stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

template <class Kind>
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Kind& e) {
    return e.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}
#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(part), std::string::npos) << (message)

class ImageSetTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-set-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  ImageSet read(const std::string& below = "") const { return read_image_set(folder_ + below, find_image_layout(folder_ + below), 2); }
  std::string folder_;
};

TEST_F(ImageSetTest, PngIsExactAndJpegIsNear) {
  for (const int64_t channels : {1, 3}) {
    const Image image = ramp(9, 13, channels);
    const std::string png = png_of(image);
    const Image back = decode_image(as_bytes(png), "x");
    EXPECT_EQ(back.pixels, image.pixels);
    EXPECT_EQ(image_size(as_bytes(png), "x"), (ImageSize{9, 13, channels}));
    Image smooth = image;
    for (size_t i = 0; i < smooth.pixels.size(); ++i) smooth.pixels[i] = static_cast<uint8_t>(40 + i / 3);
    const std::string jpeg = jpeg_of(smooth, 98);
    const Image near = decode_image(as_bytes(jpeg), "x");
    ASSERT_EQ(near.pixels.size(), smooth.pixels.size());
    EXPECT_EQ(image_size(as_bytes(jpeg), "x"), (ImageSize{9, 13, channels}));
    for (size_t i = 0; i < near.pixels.size(); ++i) ASSERT_NEAR(near.pixels[i], smooth.pixels[i], 6) << i;
  }
}

TEST_F(ImageSetTest, EveryTruncationAndBombIsRefused) {
  const std::string png = png_of(ramp(20, 20, 3)), jpeg = jpeg_of(ramp(20, 20, 3), 90);
  for (const std::string& file : {png, jpeg})
    for (size_t n = 0; n + 13 < file.size(); n += 7) EXPECT_THROW(decode_image(as_bytes(std::string_view(file).substr(0, n)), "x"), DamagedError) << n;
  std::string flipped = png;
  flipped[png.size() / 2] ^= 1;
  EXPECT_THROW(decode_image(as_bytes(flipped), "x"), DamagedError);
  for (const std::string& file : {png, jpeg}) {
    EXPECT_SAYS(refusal<DamagedError>([&] { decode_image(as_bytes(file), "bomb.png", 399); }), "20 x 20");
    EXPECT_SAYS(refusal<DamagedError>([&] { image_size(as_bytes(file), "bomb.png", 399); }), "bomb.png");
  }
  std::string bomb = jpeg;  // 65,500 x 65,500 in the frame header: 12 GB if it were believed
  const size_t frame = bomb.find("\xff\xc0");
  bomb.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_SAYS(refusal<DamagedError>([&] { decode_image(as_bytes(bomb), "bomb.jpg"); }), "65500 x 65500");
}

TEST_F(ImageSetTest, ResizeKeepsMeansAndEnds) {
  const Image image = ramp(8, 8, 1);
  const Image half = resize_image(image, 4, 4);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) {
      const int sum = image.pixels[static_cast<size_t>(16 * y + 2 * x)] + image.pixels[static_cast<size_t>(16 * y + 2 * x + 1)] +
                      image.pixels[static_cast<size_t>(16 * y + 8 + 2 * x)] + image.pixels[static_cast<size_t>(16 * y + 9 + 2 * x)];
      EXPECT_NEAR(half.pixels[static_cast<size_t>(4 * y + x)], sum / 4.0, 0.51);
    }
  const Image grown = resize_image(Image{1, 2, 1, {0, 100}}, 1, 4);  // cell centres at -1/4, 1/4, 3/4, 5/4
  EXPECT_EQ(grown.pixels, (std::vector<uint8_t>{0, 25, 75, 100}));
  EXPECT_EQ(with_channels(with_channels(image, 3), 1).pixels, image.pixels);
}

TEST_F(ImageSetTest, FoldersWithASplitOfTheirOwnAndATarOfThemAreEqual) {
  std::string tar;
  for (const std::string part : {"train", "test"})
    for (const std::string label : {"cat", "dog"})
      for (int i = 0; i < 4; ++i) {
        const std::string name = part + "/" + label + "/" + std::to_string(i) + ".png", file = png_of(ramp(4, 4, 3, i + 10 * static_cast<int>(label[0])));
        put("root/" + name, file);
        tar += tar_entry("set/" + name, file);
      }
  put("root/notes.txt", "x");
  put("root/train/.hidden/0.png", "x");
  fs::create_symlink("nowhere", folder_ + "/root/broken");
  put("set.tar", tar + std::string(1024, '\0'));
  const ImageSet set = read("/root"), packed = read("/set.tar");
  EXPECT_EQ(set.count(), 16);
  EXPECT_EQ(set.validation_from, 8);
  EXPECT_EQ(set.classes, (std::vector<std::string>{"cat", "dog"}));
  const Image first = ramp(4, 4, 3, 10 * 'c');
  EXPECT_EQ(set.pixels[1], first.pixels[3]) << "planes";
  EXPECT_EQ(set.pixels[16], first.pixels[1]);
  EXPECT_EQ(packed.pixels, set.pixels);
  EXPECT_EQ(packed.labels, set.labels);
  EXPECT_EQ(packed.validation_from, set.validation_from);
  // A root that is itself called test does not make all of it validation.
  fs::create_directories(folder_ + "/test");
  fs::rename(folder_ + "/root/train", folder_ + "/test/train");
  EXPECT_EQ(read("/test/train").count(), 8);
}

TEST_F(ImageSetTest, WithoutASplitATenthOfEachClass) {
  std::vector<uint32_t> labels;
  for (int i = 0; i < 250; ++i) labels.push_back(i < 200 ? 0 : 1);
  labels.push_back(2);
  const std::vector<bool> chosen = tenth_of_each_class(labels);
  std::map<uint32_t, int> count;
  int late = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    if (chosen[i]) count[labels[i]]++, late += i >= 100 && i < 200;
  EXPECT_EQ(count, (std::map<uint32_t, int>{{0, 20}, {1, 5}})) << "a class of one stays in training";
  EXPECT_GT(late, 3) << "neighbours are spread";
  EXPECT_LT(late, 17);
}

TEST_F(ImageSetTest, SizesAndChannelsBecomeThoseOfMost) {
  for (int i = 0; i < 6; ++i) put("a/" + std::to_string(i) + ".png", png_of(ramp(6, 4, 1, i))), put("b/" + std::to_string(i) + ".png", png_of(ramp(6, 4, i == 0 ? 3 : 1, i)));
  put("b/large.jpg", jpeg_of(ramp(30, 30, 3), 90));
  const ImageSet set = read();
  EXPECT_EQ(set.shape.channels, 3);
  EXPECT_EQ(set.shape.height, 6);
  EXPECT_EQ(set.shape.width, 4);
  EXPECT_EQ(set.resized, 1);
  EXPECT_EQ(set.count(), 13);
  EXPECT_EQ(set.pixels.size(), 13u * 72);
}

TEST_F(ImageSetTest, DamagedOnesAmongGoodAreLeftOutUpToFivePercent) {
  for (int i = 0; i < 20; ++i) put("a/" + std::to_string(i) + ".png", png_of(ramp(4, 4, 3, i))), put("b/" + std::to_string(i) + ".png", png_of(ramp(4, 4, 3, 9 * i)));
  put("b/5.png", png_of(ramp(4, 4, 3)).substr(0, 50));
  put("b/6.png", "no image");
  const ImageSet set = read();
  EXPECT_EQ(set.count(), 38);
  ASSERT_EQ(set.damaged.size(), 2u);
  EXPECT_SAYS(set.damaged[0] + set.damaged[1], "5.png");
  EXPECT_EQ(set.pixels.size(), 38u * 48);
  put("b/7.png", "");
  EXPECT_SAYS(refusal<DamagedError>([&] { read(); }), "3 of 40");
}

TEST_F(ImageSetTest, WhatIsNoSetIsSaid) {
  put("only/a.png", png_of(ramp(4, 4, 3)));
  put("only/b.png", png_of(ramp(4, 4, 3)));
  EXPECT_SAYS(refusal<UserError>([&] { read(); }), "1 class");
  put("text.txt", "x");
  put("text2.txt", "x");
  EXPECT_EQ(find_image_layout(folder_), ImageLayout::kNone) << "mostly text";
  put("shards/train.bin", std::string(3074, 'x'));
  EXPECT_EQ(find_image_layout(folder_ + "/shards"), ImageLayout::kNone) << "token shards are called train.bin too";
}

TEST_F(ImageSetTest, TarNamesOfAllKindsAndNoneThatClimbs) {
  const std::string deep = std::string(120, 'd') + "/cat/1.png", record = "path=" + deep + "\n";
  const std::string pax = std::to_string(record.size() + 4) + " " + record;
  for (const std::string& tar : {tar_entry("././@LongLink", deep + std::string(1, '\0'), 'L', true) + tar_entry("short", "abc", '0', true), tar_entry("x", pax, 'x') + tar_entry("short", "abc")}) {
    const auto entries = parse_tar(as_bytes(tar), "t");
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].name, deep);
    EXPECT_EQ(as_text(entries[0].content), "abc");
  }
  for (const std::string name : {"../x.png", "/etc/x.png", "a/../../x.png", "a/.."})
    EXPECT_THROW(parse_tar(as_bytes(tar_entry(name, "abc")), "t"), DamagedError) << name;
  std::string wrong = tar_entry("a/b", "abc");
  EXPECT_THROW(parse_tar(as_bytes(std::string_view(wrong).substr(0, 514)), "t"), DamagedError) << "truncated";
  wrong[0] ^= 1;
  EXPECT_THROW(parse_tar(as_bytes(wrong), "t"), DamagedError) << "checksum";
}

TEST_F(ImageSetTest, IdxPairsAlsoPacked) {
  std::string pixels, labels;
  for (int i = 0; i < 20; ++i) pixels += std::string(6, static_cast<char>(i)), labels += static_cast<char>(i % 2);
  put("train-images-idx3-ubyte.gz", gzip_of(idx_of({20, 2, 3}, pixels)));
  put("train-labels-idx1-ubyte.gz", gzip_of(idx_of({20}, labels)));
  const ImageSet alone = read();
  EXPECT_EQ(alone.validation_from, 18) << "a tenth of each class";
  EXPECT_EQ(alone.labels[18] + alone.labels[19], 1u);
  put("t10k-images-idx3-ubyte", idx_of({2, 2, 3}, pixels.substr(0, 12)));
  put("t10k-labels-idx1-ubyte", idx_of({2}, labels.substr(0, 2)));
  const ImageSet set = read();
  EXPECT_EQ(set.validation_from, 20);
  EXPECT_EQ(set.count(), 22);
  EXPECT_EQ(set.pixels, std::vector<uint8_t>([&] {
              const std::string all = pixels + pixels.substr(0, 12);
              return std::vector<uint8_t>(all.begin(), all.end());
            }()));
  put("t10k-labels-idx1-ubyte", idx_of({3}, labels.substr(0, 3)));
  EXPECT_SAYS(refusal<DamagedError>([&] { read(); }), "3 labels for 2 images");
  fs::remove(folder_ + "/t10k-labels-idx1-ubyte");
  EXPECT_SAYS(refusal<UserError>([&] { read(); }), "missing");
}

TEST_F(ImageSetTest, IdxHeadersThatLie) {
  const auto parse = [](const std::string& file) { return refusal<DamagedError>([&] { parse_idx(as_bytes(file), "x"); }); };
  EXPECT_SAYS(parse(std::string("\0\0\x0d\x01\0\0\0\1abcd", 12)), "magic 0x00000d01");
  EXPECT_SAYS(parse("abc"), "too short");
  EXPECT_SAYS(parse(idx_of({5}, "abc")), "promises 5");
  EXPECT_SAYS(parse(idx_of({0xffffffff, 0xffffffff, 0xffffffff}, "abc")), "more than");
  EXPECT_SAYS(parse(idx_of({2, 2}, "").substr(0, 9)), "header");
  const std::string gz = gzip_of(std::string(100000, 'x'));
  EXPECT_EQ(inflate_if_packed(as_bytes(gz), "x", 100000).size(), 100000u);
  EXPECT_SAYS(refusal<DamagedError>([&] { inflate_if_packed(as_bytes(gz), "x", 9999); }), "more than 9999");
  EXPECT_SAYS(refusal<DamagedError>([&] { inflate_if_packed(as_bytes(std::string_view(gz).substr(0, gz.size() - 9)), "x", 200000); }), "truncated");
}

TEST_F(ImageSetTest, CifarRecords) {
  std::string records;
  for (int i = 0; i < 20; ++i) records += std::string(1, static_cast<char>(i % 10)) + std::string(1024, static_cast<char>(i)) + std::string(2048, 'x');
  put("b/data_batch_1.bin", records);
  put("b/test_batch.bin", records.substr(0, 3073 * 3));
  put("b/batches.meta.txt", "plane\ncar\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const ImageSet set = read();
  EXPECT_EQ(set.count(), 23);
  EXPECT_EQ(set.validation_from, 20);
  EXPECT_EQ(set.classes.at(9), "truck");
  EXPECT_EQ(set.labels[19], 9u);
  EXPECT_EQ(set.pixels[19 * 3072], 19);
  put("b/data_batch_1.bin", records.substr(0, 5000));
  EXPECT_SAYS(refusal<DamagedError>([&] { read(); }), "truncated");
  put("b/data_batch_1.bin", std::string(3073, '\x0a'));
  EXPECT_SAYS(refusal<DamagedError>([&] { read(); }), "label 10");
}

TEST_F(ImageSetTest, PackedOnceAndEveryFlippedByteIsFound) {
  for (int i = 0; i < 5; ++i) put("s/a/" + std::to_string(i) + ".png", png_of(ramp(4, 4, 3, i))), put("s/b/" + std::to_string(i) + ".png", png_of(ramp(4, 4, 3, 9 * i)));
  const ImageSet set = read("/s");
  const std::string path = folder_ + "/packed", key = image_set_key(folder_ + "/s");
  write_packed_images(path, set, key);
  const PackedImages packed(path);
  EXPECT_EQ(packed.key(), key);
  EXPECT_EQ(packed.classes(), set.classes);
  EXPECT_EQ(packed.validation_from(), set.validation_from);
  for (int64_t i = 0; i < set.count(); ++i) {
    EXPECT_EQ(packed.label(i), set.labels[static_cast<size_t>(i)]);
    EXPECT_TRUE(std::equal(packed.pixels(i), packed.pixels(i) + 48, set.pixels.begin() + i * 48));
  }
  const std::string good = read_file(path);
  const size_t padding = good.size() - 10 * (48 + 4);
  uint64_t length = 0;
  std::memcpy(&length, good.data() + 8, 8);
  for (size_t at = 0; at < good.size(); ++at) {
    if (at >= 16 + length && at < padding) continue;  // zeros that nobody reads
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    write_atomically(path + "2", bad);
    ASSERT_THROW(PackedImages{path + "2"}, DamagedError) << at;
  }
  for (const size_t size : {size_t{0}, size_t{15}, good.size() - 1}) {
    write_atomically(path + "2", good.substr(0, size));
    EXPECT_THROW(PackedImages{path + "2"}, DamagedError) << size;
  }
  fs::last_write_time(folder_ + "/s/a/1.png", fs::file_time_type::clock::now() + std::chrono::seconds(9));
  EXPECT_NE(image_set_key(folder_ + "/s"), key);
}

}  // namespace
}  // namespace huajin
