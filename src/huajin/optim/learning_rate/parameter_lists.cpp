#include "huajin/optim/learning_rate/parameter_lists.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

namespace huajin {
namespace {

// Elements of a piece: 64 KiB of float32, so that weight, gradient, state and intermediates of one stay in a core's second-level cache.
constexpr int64_t kPiece = 1 << 14;

Tensor cut(const Tensor& t, int64_t begin, int64_t end) { return t.view(-1).slice(0, begin, end); }

// Fixed by the sizes, not by the number of cores: the same bits on any machine.
std::vector<ParameterLists> in_pieces(const ParameterLists& all) {
  std::vector<ParameterLists> pieces;
  int64_t room = 0;
  for (size_t i = 0; i < all.w.size(); ++i) {
    for (int64_t begin = 0; begin < all.w[i].numel();) {
      if (room == 0) {
        pieces.push_back({all.rate, all.step, all.decays, {}, {}, {}, std::vector<Tensors>(all.slots.size())});
        room = kPiece;
      }
      const int64_t end = std::min(begin + room, all.w[i].numel());
      ParameterLists& piece = pieces.back();
      piece.w.push_back(cut(all.w[i], begin, end));
      piece.g.push_back(cut(all.g[i], begin, end));
      for (size_t s = 0; s < all.slots.size(); ++s) piece.slots[s].push_back(cut(all.slots[s][i], begin, end));
      room -= end - begin;
      begin = end;
    }
  }
  return pieces;
}

bool can_be_cut(const ParameterLists& lists) {
  const auto fits = [](const Tensor& t) { return t.device().is_cpu() && t.is_contiguous(); };
  return std::all_of(lists.w.begin(), lists.w.end(), fits) &&
         std::all_of(lists.slots.begin(), lists.slots.end(), [&](auto& slot) { return std::all_of(slot.begin(), slot.end(), fits); });
}

void update_in_pieces(const ParameterLists& lists, const ListOptimizer::Update& update) {
  const std::vector<ParameterLists> pieces = in_pieces(lists);
  at::parallel_for(0, static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    at::NoGradGuard off;                        // worker threads have flags of their own
    at::AutoDispatchBelowADInplaceOrView fast;  // versions are counted once, below
    for (int64_t i = begin; i < end; ++i) update(pieces[static_cast<size_t>(i)]);
  });
}

}  // namespace

Tensor gradient_or_zeros(const Parameter& p) { return p.grad.defined() ? p.grad.contiguous() : at::zeros_like(p.value); }

ListOptimizer::ListOptimizer(Session& session, double learning_rate, const SlotNames& slots, Reach reach, Update update)
    : session_(session), base_rate_(learning_rate), reach_(reach), update_(std::move(update)) {
  for (const auto& [name, kind] : slots) {
    session.declare_slot(name, kind);
    slots_.push_back(name);
  }
}

void ListOptimizer::begin(const Step& step, double rate_factor) {
  rate_ = base_rate_ * rate_factor;
  step_ = step.progress.step + 1;
}

void ListOptimizer::step(std::span<Parameter* const> parameters) {
  for (const bool decays : {true, false}) {
    ParameterLists lists{rate_, step_, decays, {}, {}, {}, std::vector<Tensors>(slots_.size())};
    for (Parameter* p : parameters) {
      if (reach_ != Reach::kAll && p->decay != decays) continue;
      lists.parameters.push_back(p);
      lists.w.push_back(p->value);
      lists.g.push_back(gradient_or_zeros(*p));
      for (size_t s = 0; s < slots_.size(); ++s) lists.slots[s].push_back(session_.slot(slots_[s], *p));
    }
    if (lists.w.empty() && reach_ != Reach::kAll) continue;
    if (reach_ == Reach::kElement && can_be_cut(lists))
      update_in_pieces(lists, update_);
    else
      update_(lists);
    // Neither fused kernels nor the pieces count as a change, and the engine renews bf16 and fp16 working copies only of what changed.
    for (const Tensor& tensor : lists.w) tensor.unsafeGetTensorImpl()->bump_version();
    if (reach_ == Reach::kAll) return;
  }
}

void update_mean(const Tensors& mean, const Tensors& x, double beta) { at::_foreach_lerp_(mean, x, 1 - beta); }

void update_mean_square(const Tensors& mean, const Tensors& x, double beta) {
  at::_foreach_mul_(mean, beta);
  at::_foreach_addcmul_(mean, x, x, 1 - beta);
}

Tensors root(const Tensors& square, double divisor, double epsilon) {
  Tensors made = at::_foreach_sqrt(square);
  if (divisor != 1) at::_foreach_mul_(made, 1 / std::sqrt(divisor));
  at::_foreach_add_(made, epsilon);
  return made;
}

Tensors with_penalty(const Tensors& g, const Tensors& w, double weight_decay) { return weight_decay > 0 ? at::_foreach_add(g, w, weight_decay) : g; }

void shrink(const Tensors& w, double share) {
  if (share > 0) at::_foreach_mul_(w, 1 - share);
}

}  // namespace huajin
