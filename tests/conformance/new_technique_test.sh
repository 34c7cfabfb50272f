#!/bin/bash
# tools/new_technique in a copy of the tree: the four files and three lists are there, the two sources compile, the conformance table would fail, a mistake changes
# nothing, and --undo leaves no trace. Usage: new_technique_test.sh SOURCE "COMPILER FLAGS"
set -euo pipefail
source=$1 compile=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/tests"
cp -r "$source/tools" "$source/src" "$copy/"
cp -r "$source/tests/conformance" "$copy/tests/"
cp -r "$copy" "$copy.before"
trap 'rm -rf "$copy" "$copy.before"' EXIT
cd "$copy"
fail() { echo "new_technique_test: $1" >&2; exit 1; }

for made in "look_ahead optim/averaging LookAhead" "aaa model/curriculum Aaa" "zz9 data/sampling Zz9" "newton optim/learning_rate Newton --optimizer"; do
  read -r name box class kind <<<"$made"
  tools/new_technique $kind "$name" "$box" >/dev/null
  for file in "$name.h" "$name.cpp" "${name}_test.cpp" README.md; do [ -s "src/huajin/$box/$name/$file" ] || fail "$file is missing"; done
  list=src/huajin/${box%%/*}/CMakeLists.txt
  [ "$(grep -c "$name/$name\(_test\)\?\.cpp" "$list")" = 2 ] || fail "$list does not list both sources"
  grep -q "r.add<$class, ${class}Config>(\"$name\", \"$box\"" src/huajin/catalog.cpp || fail "the catalog does not list $name"
  grep -q "{\"$name\"," tests/conformance/table.cpp || fail "the table has no row for $name"
  grep -q "TO FILL IN" "src/huajin/$box/$name/README.md" || fail "its card would pass"
  grep -q "FAIL()" "src/huajin/$box/$name/${name}_test.cpp" || fail "its test would pass"
done
grep -q 'r.add<Newton, NewtonConfig>("newton", .*, PartOfRun::kOptimizer);' src/huajin/catalog.cpp || fail "the catalog does not list newton as an optimizer"
for bad in "look_ahead optim/averaging" "Bad optim/averaging" "x optim/nowhere" "adamw data/sampling" "one"; do
  if tools/new_technique $bad >/dev/null 2>"$copy/message"; then fail "\"$bad\" was accepted"; fi
  [ "$(wc -l <"$copy/message")" = 1 ] || fail "\"$bad\": the message is not one line"
done
rm "$copy/message"
if [ -n "$compile" ]; then
  # shellcheck disable=SC2086
  $compile -fsyntax-only -I"$copy/src" -I"$copy/tests" src/huajin/optim/averaging/look_ahead/look_ahead.cpp || fail "the new source does not compile"
  # shellcheck disable=SC2086
  $compile -fsyntax-only -I"$copy/src" -I"$copy/tests" src/huajin/optim/learning_rate/newton/newton.cpp || fail "the new optimizer does not compile"
fi
for made in "look_ahead optim/averaging" "aaa model/curriculum" "zz9 data/sampling" "newton optim/learning_rate"; do tools/new_technique --undo $made >/dev/null; done
diff -r "$copy" "$copy.before" || fail "--undo left something behind"
echo "new_technique: fine"
