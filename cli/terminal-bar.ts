/** A progress bar on a terminal with rate and time left; silent without a terminal. */

import cliProgress from "cli-progress";
import { formatBytes } from "./output.ts";

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
    const of = total > 0 ? `${counted === "bytes" ? formatBytes(done) : done} of ${text(total)}` : text(done);
    this.bar!.setTotal(Math.max(total, 1));
    this.bar!.update(total > 0 ? Math.min(done, total) : 0, {
      label,
      of,
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
