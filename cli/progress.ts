/** Progress of long commands on standard error: a bar on a terminal, else a line every few seconds. */

import cliProgress from "cli-progress";
import { formatBytes, formatDuration } from "./output.ts";

const barWidth = 24;
const redrawMs = 200;
const lineMs = 5_000;

export interface ProgressOutput {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

export class Progress {
  private readonly startedAt: number;
  private shownAt: number;
  private bytes = 0;
  private records = 0;
  /** Bytes done by earlier runs, which take almost no time and would distort the rate. */
  private earlierBytes = 0;
  private earlierRecords = 0;
  private isBarShown = false;
  /** Entries to load before it continues. */
  private awaited = 0;

  /** @param totalBytes undefined if unknown. */
  constructor(
    private readonly totalBytes: number | undefined,
    private readonly output: ProgressOutput = process.stderr,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.startedAt = nowMs();
    this.shownAt = this.startedAt;
  }

  get seconds(): number {
    return (this.nowMs() - this.startedAt) / 1_000;
  }

  get recordsPerSecond(): number {
    return Math.round(this.records / Math.max(this.seconds, 0.001));
  }

  addBytes(bytes: number): void {
    this.bytes += bytes;
  }

  addRecords(records: number, isEarlier: boolean): void {
    if (isEarlier) {
      this.earlierRecords += records;
      this.earlierBytes = this.bytes;
    } else this.records += records;
    this.awaited = 0;
    this.showSometimes();
  }

  /** Called while the sent entries are being loaded. */
  wait(entries: number): void {
    this.awaited = entries;
    this.showSometimes();
  }

  /** Progress for programs. */
  get figures() {
    return {
      records: this.earlierRecords + this.records,
      bytes: Math.round(this.bytes),
      totalBytes: this.totalBytes ?? null,
      recordsPerSecond: this.recordsPerSecond,
      secondsLeft: this.totalBytes === undefined ? null : Math.round(this.secondsLeft(this.totalBytes) ?? 0),
    };
  }

  /** Writes above the bar. */
  note(line: string): void {
    this.clear();
    this.output.write(`${line}\n`);
  }

  /** Removes the bar. */
  end(): void {
    this.clear();
  }

  private showSometimes(): void {
    if (this.nowMs() - this.shownAt < (this.output.isTTY ? redrawMs : lineMs)) return;
    this.shownAt = this.nowMs();
    const text = this.text();
    if (!this.output.isTTY) {
      this.output.write(`${text}\n`);
      return;
    }
    const columns = (this.output.columns ?? 80) - 1;
    this.output.write(`\r\x1b[K${`${this.bar(columns - text.length)}${text}`.slice(0, columns)}`);
    this.isBarShown = true;
  }

  /** Fills the remaining width next to the figures. */
  private bar(available: number): string {
    const share = this.share();
    const width = Math.min(barWidth, available - "[] ".length);
    if (share === undefined || width < 4) return "";
    const filled = Math.round(share * width);
    return `[${"█".repeat(filled)}${"░".repeat(width - filled)}] `;
  }

  /** `42 %  420000 records  25000/s  80.1 MiB of 190.7 MiB  23 s left` */
  private text(): string {
    const share = this.share();
    const parts = share === undefined ? [] : [`${Math.floor(share * 100)} %`];
    parts.push(`${this.earlierRecords + this.records} records`, `${this.recordsPerSecond}/s`);
    if (this.awaited > 0) return [...parts, `${this.awaited} of them are being loaded`].join("  ");
    if (this.totalBytes === undefined) return [...parts, formatBytes(this.bytes)].join("  ");
    parts.push(`${formatBytes(Math.round(this.bytes))} of ${formatBytes(this.totalBytes)}`);
    const left = this.secondsLeft(this.totalBytes);
    if (left !== undefined) parts.push(`${formatDuration(left)} left`);
    return parts.join("  ");
  }

  private share(): number | undefined {
    return this.totalBytes ? Math.min(1, this.bytes / this.totalBytes) : undefined;
  }

  private secondsLeft(totalBytes: number): number | undefined {
    const done = this.bytes - this.earlierBytes;
    if (done <= 0) return undefined;
    return Math.max(0, ((totalBytes - this.bytes) * this.seconds) / done);
  }

  private clear(): void {
    if (this.isBarShown) this.output.write("\r\x1b[K");
    this.isBarShown = false;
  }
}

/** Unit of the progress. */
export type Counted = "bytes" | "entries" | "rows";

export class TerminalBar {
  private bar: cliProgress.SingleBar | undefined;
  private label = "";
  private startedAt = 0;

  /** @param stream replaced in tests. */
  constructor(private readonly stream: NodeJS.WriteStream = process.stderr) {}

  /** @param total 0 if unknown. */
  show(label: string, done: number, total: number, counted: Counted): void {
    if (this.stream.isTTY !== true) return;
    if (label !== this.label) {
      this.end();
      this.label = label;
      this.startedAt = performance.now();
      this.bar = this.start(total);
    }
    const text = (count: number) => (counted === "bytes" ? formatBytes(count) : `${count} ${counted}`);
    const seconds = Math.max((performance.now() - this.startedAt) / 1_000, 0.001);
    const rate = Math.round(done / seconds);
    const totals =
      total > 0 ? `${counted === "bytes" ? formatBytes(done) : done} of ${text(total)}` : text(done);
    this.bar!.setTotal(Math.max(total, 1));
    this.bar!.update(total > 0 ? Math.min(done, total) : 0, {
      label,
      of: totals,
      rate: counted === "bytes" ? `${formatBytes(rate)}/s` : `${rate}/s`,
    });
  }

  end(): void {
    this.bar?.stop();
    this.bar = undefined;
    this.label = "";
  }

  private start(total: number): cliProgress.SingleBar {
    const bar = new cliProgress.SingleBar(
      {
        format:
          total > 0
            ? "{label} [{bar}] {percentage} %  {of}  {rate}  {eta_formatted} left"
            : "{label}  {of}  {rate}",
        stream: this.stream,
        fps: 5,
        barsize: 24,
        clearOnComplete: true,
        hideCursor: false,
        // Each command handles signals itself.
        gracefulExit: false,
      },
      cliProgress.Presets.shades_classic,
    );
    bar.start(Math.max(total, 1), 0, { label: this.label, of: "", rate: "" });
    return bar;
  }
}
