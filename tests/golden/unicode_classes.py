#!/usr/bin/env python3
"""Writes src/huajin/io/unicode_classes.cpp: runs of code points that the `regex` module (pip install regex) takes as \\p{L}, \\p{N} or \\s.
   python3 tests/golden/unicode_classes.py > src/huajin/io/unicode_classes.cpp"""
import regex

CLASSES = (("kLetter", regex.compile(r"\p{L}")), ("kNumber", regex.compile(r"\p{N}")), ("kSpace", regex.compile(r"\s")))


def name_of(point):
    if 0xD800 <= point < 0xE000:
        return None
    return next((name for name, pattern in CLASSES if pattern.match(chr(point))), None)


runs, start = [], None
for point in range(0x110001):
    name = name_of(point) if point < 0x110000 else None
    if start and start[1] != name:
        runs.append((start[0], point - 1, start[1]))
        start = None
    if name and not start:
        start = (point, name)

print(f"// Made by tests/golden/unicode_classes.py with regex {regex.__version__}; don't edit.")
print('#include "huajin/io/unicode_classes.h"\n\nnamespace huajin {\nnamespace {\n')
print("struct ClassRun {\n  uint32_t first, last;\n  UnicodeClass kind;\n};")
print("namespace runs {  // apart, so that the short names stay here\nusing enum UnicodeClass;\nconstexpr ClassRun kClassRuns[] = {")
line = "   "
for first, last, name in runs:
    item = f" {{0x{first:X}, 0x{last:X}, {name}}},"
    if len(line) + len(item) > 148:
        print(line)
        line = "   "
    line += item
print(line + "\n};\n}  // namespace runs\nusing runs::kClassRuns;\n\n}  // namespace\n")
print("""const std::vector<UnicodeClass>& low_unicode_classes() {
  static const std::vector<UnicodeClass> table = [] {
    std::vector<UnicodeClass> classes(kLowUnicode, UnicodeClass::kOther);
    for (const ClassRun& run : kClassRuns)
      for (uint32_t p = run.first; p <= run.last && p < kLowUnicode; ++p) classes[p] = run.kind;
    return classes;
  }();
  return table;
}

UnicodeClass unicode_class(uint32_t point) {
  size_t low = 0, high = std::size(kClassRuns);  // the last run that begins at or before the point is at low - 1
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (kClassRuns[middle].first <= point) low = middle + 1;
    else high = middle;
  }
  return low > 0 && point <= kClassRuns[low - 1].last ? kClassRuns[low - 1].kind : UnicodeClass::kOther;
}

}  // namespace huajin""")
