"""Turns the JSON of `tilewave bench` into Markdown rows: python tools/benchmarks_table.py FILE.json ..."""

import json
import sys
from pathlib import Path


def cell(value):
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def main():
    for path in map(Path, sys.argv[1:]):
        data = json.loads(path.read_text())
        print(f"\nCommit {data['machine']['commit']}.\n")
        print("| case | contender | median | spread | unit | ratio to contender | of the limit |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for r in data["rows"]:
            print(
                f"| {r['case']} | {r['contender']} | {cell(r['value'])} | {cell(r['spread'])} | {r['unit']} | "
                f"{cell(r['ratio_to_contender'])} | {cell(r['fraction_of_limit'])} |"
            )


if __name__ == "__main__":
    main()
