// XXH3-128, as `xxhsum -H2` prints it: 32 hex digits, big-endian. Finds damage; it is no defence against forgery.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "huajin/io/file.h"

namespace huajin {

class Hasher {
 public:
  Hasher();
  void update(Bytes bytes);
  void update(std::string_view text) { update(as_bytes(text)); }
  void update(int64_t number);  // 8 bytes, little-endian
  std::string hex() const;      // of all so far; updating may go on
  void reset();

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

std::string xxh3_hex(Bytes bytes);
inline std::string xxh3_hex(std::string_view text) { return xxh3_hex(as_bytes(text)); }

}  // namespace huajin
