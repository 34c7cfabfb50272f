// Tests only: an image as a JPEG file.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

#include <jpeglib.h>

#include "huajin/io/image_decode.h"

namespace huajin {

inline std::string jpeg_of(const Image& image, int quality) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(image.width), info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = static_cast<int>(image.channels), info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(image.pixels.data()) + static_cast<size_t>(info.next_scanline) * static_cast<size_t>(image.width * image.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  jpeg_destroy_compress(&info);
  return file;
}

}  // namespace huajin
