#include "app/run_log.h"

#include <nlohmann/json.hpp>

#include "huajin/core/budget.h"
#include "huajin/io/json.h"

namespace huajin {

void RunLog::on_step(const Progress& progress, double seconds) { progress_ = progress, seconds_ = seconds; }

void RunLog::on_readings(int64_t step, std::span<const Reading> readings) {
  Json line{{"step", step},
            {"draw", progress_.draw},
            {"tokens", progress_.tokens},
            {"examples", progress_.examples},
            {"fraction", progress_.fraction},
            {"seconds_step", seconds_},
            {"seconds", seconds_since_start()}};
  for (auto& reading : readings) line[reading.name] = reading.value;
  file_.append(json_text(line));
}

void RunLog::on_evaluation(const Progress& progress, double loss, double bits_per_byte, double accuracy) {
  file_.append(json_text(Json{{"step", progress.step},
                              {"tokens", progress.tokens},
                              {"examples", progress.examples},
                              {"val_loss", loss},
                              {"val_bits_per_byte", bits_per_byte},
                              {"val_accuracy", accuracy},
                              {"seconds", seconds_since_start()}}));
}

void RunLog::on_note(const std::string& text) {
  file_.append(json_text(Json{{"step", progress_.step}, {"note", text}, {"seconds", seconds_since_start()}}));
}

}  // namespace huajin
