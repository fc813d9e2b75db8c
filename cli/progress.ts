/** Shows how far a long command is, on standard error: a bar on a terminal, else a line every few seconds. */

import { bytesText, durationText } from "./output.ts";

const barWidth = 24;
const redrawMs = 200;
const lineMs = 5_000;

/** Where it is shown. */
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
  /** What earlier runs have done takes next to no time and would spoil the rate. */
  private earlierBytes = 0;
  private earlierRecords = 0;
  private isBarShown = false;

  /** @param totalBytes undefined when it is not known. */
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
    const every = this.output.isTTY ? redrawMs : lineMs;
    if (this.nowMs() - this.shownAt < every) return;
    this.shownAt = this.nowMs();
    this.show();
  }

  /** Writes above the bar. */
  note(line: string): void {
    this.clear();
    this.output.write(`${line}\n`);
  }

  /** Takes the bar away. */
  end(): void {
    this.clear();
  }

  private show(): void {
    if (!this.output.isTTY) {
      this.output.write(`${this.text()}\n`);
      return;
    }
    const share = this.share();
    const filled = Math.round((share ?? 0) * barWidth);
    const bar = share === undefined ? "" : `[${"█".repeat(filled)}${"░".repeat(barWidth - filled)}] `;
    const line = `${bar}${this.text()}`.slice(0, (this.output.columns ?? 80) - 1);
    this.output.write(`\r\x1b[K${line}`);
    this.isBarShown = true;
  }

  /** `42 %  420000 records  25000/s  80.1 MiB of 190.7 MiB  23 s left` */
  private text(): string {
    const share = this.share();
    const parts = share === undefined ? [] : [`${Math.floor(share * 100)} %`];
    parts.push(`${this.earlierRecords + this.records} records`, `${this.recordsPerSecond}/s`);
    if (this.totalBytes === undefined) return [...parts, bytesText(this.bytes)].join("  ");
    parts.push(`${bytesText(Math.round(this.bytes))} of ${bytesText(this.totalBytes)}`);
    const left = this.secondsLeft(this.totalBytes);
    if (left !== undefined) parts.push(`${durationText(left)} left`);
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
