// One function a sub-command, one file each. They return the exit code and throw Error for what a person can mend.
#pragma once
#include "app/command_line.h"

namespace huajin {

int train_command(const CommandLine& line);
int resume_command(const CommandLine& line);
int eval_command(const CommandLine& line);
int generate_command(const CommandLine& line);
int bench_command(const CommandLine& line);
int bench_tokenizer(const CommandLine& line, const std::string& path);
int plan_command(const CommandLine& line);
int check_command(const CommandLine& line);
int verify_command(const CommandLine& line);
int average_command(const CommandLine& line);
int transfer_command(const CommandLine& line);
int compare_command(const CommandLine& line);
int report_command(const CommandLine& line);
int list_command(const CommandLine& line);
int explain_command(const CommandLine& line);
int data_command(const CommandLine& line);
int doctor_command(const CommandLine& line);  // doctor.cpp

}  // namespace huajin
