/**
 * Work that an operator starts from the console: this executable is started again for each, so that it disturbs neither
 * capture nor flags, and its progress is read from its standard error.
 */

import type { Subprocess } from "bun";
import { AppError } from "../lib/errors.ts";

export type JobKind = "create" | "verify";

export interface Job {
  id: string;
  kind: JobKind;
  /** The backup that is verified; null while one is made. */
  name: string | null;
  state: "running" | "done" | "failed";
  startedAt: Date;
  finishedAt: Date | null;
  /** What it is doing, for people. */
  step: string | null;
  /** Bytes, or 0 of 0 when that is not known. */
  done: number;
  total: number;
  error: string | null;
  /** What the command printed. */
  result: Record<string, unknown> | null;
}

/** Another one runs. */
export class JobRunning extends AppError {
  readonly code = "job_running";
  constructor() {
    super("A backup is being made or verified; wait until that is done.");
  }
}

/** Finished jobs that are remembered. */
const finishedMax = 20;
/** What a command may print; more is cut off. */
const outputBytesMax = 4 * 1024 * 1024;
const lineBytesMax = 64 * 1024;

type Child = Subprocess<"ignore", "pipe", "pipe">;

export class Jobs {
  private readonly jobs: Job[] = [];
  private child: Child | undefined;
  private running: Promise<void> = Promise.resolve();

  /** Every job that is remembered, the newest first. */
  list(): Job[] {
    return [...this.jobs].reverse();
  }

  find(id: string): Job | undefined {
    return this.jobs.find((job) => job.id === id);
  }

  /**
   * Starts a command; one at a time.
   *
   * @throws {JobRunning}
   */
  start(kind: JobKind, name: string | null, command: readonly string[], now: Date): Job {
    if (this.jobs.some(({ state }) => state === "running")) throw new JobRunning();
    const job: Job = {
      ...{ id: Bun.randomUUIDv7(), kind, name, state: "running", startedAt: now, finishedAt: null },
      ...{ step: null, done: 0, total: 0, error: null, result: null },
    };
    this.jobs.push(job);
    if (this.jobs.length > finishedMax) this.jobs.shift();
    this.running = this.run(job, command);
    return job;
  }

  /** Ends the job that runs; the next backup cleans up behind it. */
  async stop(): Promise<void> {
    this.child?.kill("SIGTERM");
    await this.running;
  }

  private async run(job: Job, command: readonly string[]): Promise<void> {
    try {
      const child: Child = Bun.spawn([...command], {
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
        env: process.env,
      });
      this.child = child;
      let complaint = "";
      const [output, , code] = await Promise.all([
        textOf(child.stdout),
        eachLine(child.stderr, (line) => {
          if (!line.startsWith('{"step":')) complaint = line.replace(/^flagkeep: /, "");
          else Object.assign(job, JSON.parse(line));
        }),
        child.exited,
      ]);
      if (code === 0) Object.assign(job, { state: "done", result: JSON.parse(output) });
      else Object.assign(job, { state: "failed", error: complaint || `It ended with ${code}.` });
    } catch (error) {
      Object.assign(job, { state: "failed", error: (error as Error).message });
    } finally {
      this.child = undefined;
      job.finishedAt = new Date();
    }
  }
}

/**
 * Runs a command to its end and returns what it printed, as JSON; how it ended does not matter.
 *
 * @param environment what no list of processes shall show, beside this one's variables.
 */
export async function jsonOf(
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    env: { ...process.env, ...environment },
  });
  return JSON.parse(await textOf(child.stdout));
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream)
    if (text.length < outputBytesMax) text += decoder.decode(chunk, { stream: true });
  return text;
}

async function eachLine(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!.slice(0, lineBytesMax);
    for (const line of lines) if (line.trim() !== "") take(line.trim());
  }
  if (rest.trim() !== "") take(rest.trim());
}
