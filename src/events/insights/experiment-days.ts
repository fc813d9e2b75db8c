/** SQL that maps moments to the days of a series. */

const dayMicros = 86_400_000_000;

/** Days are counted from 0. Moments before the first day belong to it, those after the last one to that. */
export class DayMapping {
  /** @param ends of the days in microseconds, ascending and exclusive */
  constructor(private readonly ends: readonly number[]) {}

  /** The day of a moment. */
  getDay(moment: string): string {
    const last = this.ends.length - 1;
    // Days have 24 hours except where the time zone changes its offset: a case for each run of such days.
    const cases: string[] = [];
    let from = 0;
    for (let to = 0; to < last; to++) {
      const next = this.ends[to + 1]!;
      if (next - this.ends[to]! === dayMicros && to + 1 < last) continue;
      const day = `least(${from + 1} + floor((${moment} - ${this.ends[from]!}) / ${dayMicros}.0), ${to + 1})`;
      cases.push(`WHEN ${moment} < ${next} THEN ${day}`);
      from = to + 1;
    }
    if (last === 0) return "0::INTEGER";
    return `(CASE WHEN ${moment} < ${this.ends[0]!} THEN 0 ${cases.join(" ")} ELSE ${last} END)::INTEGER`;
  }

  /** The end of a day. */
  end(day: string): string {
    return `[${this.ends.join(", ")}][${day} + 1]`;
  }
}
