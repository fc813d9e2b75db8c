/** Collects the lines about skipped tests in the output of `bun test`. */
export function skippedSummary() {
  const missing = new Set<string>();
  let count = 0;
  return {
    /** Reads a line of the output; true for a line that the summary replaces. */
    replaces(line: string): boolean {
      const skipped = /^SKIPPED .*?: (.*)$/.exec(line);
      if (skipped !== null) {
        const reason = skipped[1]!.replace(/^(?:this needs|no) /, "").replace(/(?: here)?\.?$/, "");
        missing.add(reason);
        return true;
      }
      count += Number(/^\s*(\d+) skip\s*$/.exec(line)?.[1] ?? 0);
      return false;
    },
    /** The summary; undefined if all tests ran. */
    line(): string | undefined {
      if (count === 0 && missing.size === 0) return undefined;
      return `${count} tests skipped; missing: ${[...missing].sort().join("; ") || "unknown"}`;
    },
  };
}
