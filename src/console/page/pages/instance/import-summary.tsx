/** Summary of an import, with the figures of `flagkeep import`. */

import { dateTime, number } from "../../lib/format.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.instance.imports;

export interface ImportSummary {
  accepted: number;
  duplicate: number;
  made: number;
  rejected: number;
  people: number;
  first_time: string | null;
  last_time: string | null;
  shared_devices: number;
  placeholder_ids: number;
  left_out: Readonly<Record<string, number>>;
  not_taken: Readonly<Record<string, number>>;
  formats: readonly string[];
  warnings: readonly string[];
  dry_run: boolean;
  rejections?: Readonly<Record<string, number>>;
  first_events?: readonly object[];
  time_spans?: Readonly<Record<string, { first: string; last: string }>>;
}

const counts = ["accepted", "duplicate", "made", "rejected", "people"] as const;
/** Shown only if they occur. */
const rareCounts = ["shared_devices", "placeholder_ids"] as const;
const names = ["left_out", "not_taken", "rejections"] as const;
/** Further names are in `flagkeep import --json`. */
const namesMax = 50;

export function ImportSummaryView({ summary, isOpen = false }: { summary: ImportSummary; isOpen?: boolean }) {
  const { first_time, last_time, time_spans = {}, first_events = [] } = summary;
  const row = (name: keyof typeof w.figures, lines: readonly string[]) =>
    lines.length > 0 && (
      <div key={name}>
        <dt>{w.figures[name]}</dt>
        <dd>
          {lines.map((line) => (
            <div key={line}>{line}</div>
          ))}
        </dd>
      </div>
    );
  const listed = (counts: Readonly<Record<string, number>> = {}) =>
    Object.entries(counts)
      .sort(([, one], [, other]) => other - one)
      .slice(0, namesMax)
      .map(([name, records]) => `${name}: ${number(records)}`);
  return (
    <details open={isOpen}>
      <summary>{summary.dry_run ? w.dryRunSummary : w.summary}</summary>
      <dl class="properties">
        {counts.map((name) => row(name, [number(summary[name])]))}
        {rareCounts.map((name) => row(name, summary[name] > 0 ? [number(summary[name])] : []))}
        {row("first_time", first_time === null ? [] : [dateTime(first_time)])}
        {row("last_time", last_time === null ? [] : [dateTime(last_time)])}
        {names.map((name) => row(name, listed(summary[name])))}
        {row("formats", summary.formats)}
        {row("warnings", summary.warnings)}
        {row(
          "time_spans",
          Object.entries(time_spans).map(
            ([format, { first, last }]) => `${format}: ${w.span(dateTime(first), dateTime(last))}`,
          ),
        )}
        {first_events.length > 0 && (
          <div>
            <dt>{w.figures.first_events}</dt>
            <dd>
              <pre>{first_events.map((event) => JSON.stringify(event, null, 2)).join("\n")}</pre>
            </dd>
          </div>
        )}
      </dl>
    </details>
  );
}
