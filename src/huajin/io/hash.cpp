#include "huajin/io/hash.h"

#include <xxhash.h>

#include <new>

namespace huajin {
namespace {

XXH3_state_t* xxh3_state(void* p) { return static_cast<XXH3_state_t*>(p); }

std::string to_hex(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string hex;
  for (unsigned char byte : canonical.digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace

void Hasher::Free::operator()(void* state) const { XXH3_freeState(xxh3_state(state)); }
Hasher::Hasher() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  reset();
}
void Hasher::reset() { XXH3_128bits_reset(xxh3_state(state_.get())); }
void Hasher::update(Bytes bytes) {
  if (!bytes.empty()) XXH3_128bits_update(xxh3_state(state_.get()), bytes.data(), bytes.size());
}
void Hasher::update(int64_t number) {
  std::byte bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(static_cast<uint64_t>(number) >> (8 * i));
  update(Bytes(bytes));
}
std::string Hasher::hex() const { return to_hex(XXH3_128bits_digest(xxh3_state(state_.get()))); }

std::string xxh3_hex(Bytes bytes) { return to_hex(XXH3_128bits(bytes.data(), bytes.size())); }

}  // namespace huajin
