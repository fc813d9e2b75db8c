/** Parts of a batch's records that are not in its events (contract, import 1.2). */

import { addName, emptyCounts, type ImportCounts } from "./counts.ts";
import type { MappedRecord } from "./map/mapped.ts";

type Omission = Pick<MappedRecord, "notTaken" | "leftOut" | "warnings">;

export class Omissions {
  private readonly list: {
    line: number;
    names: readonly string[];
    leftOut: string | undefined;
    warnings: readonly string[];
  }[] = [];

  /** Adds what a record does not pass on to its events. */
  add(line: number, { notTaken, leftOut, warnings = [] }: Omission): void {
    const names = [...(notTaken ?? [])];
    if (names.length > 0 || leftOut !== undefined || warnings.length > 0)
      this.list.push({ line, names, leftOut, warnings });
  }

  /** Whether a record was left out on purpose. */
  get hasLeftOut(): boolean {
    return this.list.some(({ leftOut }) => leftOut !== undefined);
  }

  /** The counts of the records that match a condition. */
  counts(isCounted: (line: number) => boolean): Pick<ImportCounts, "left_out" | "not_taken" | "warnings"> {
    const { left_out, not_taken, warnings } = emptyCounts();
    for (const omission of this.list) {
      if (!isCounted(omission.line)) continue;
      // Sorted, so that the order does not depend on how the record was read.
      for (const name of [...omission.names].sort()) addName(not_taken, name);
      for (const name of omission.warnings) addName(warnings, name);
      if (omission.leftOut !== undefined) addName(left_out, omission.leftOut);
    }
    return { left_out, not_taken, warnings };
  }
}
