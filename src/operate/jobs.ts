/**
 * Jobs that an operator starts from the console. Each runs this executable in a separate process, so that it disturbs
 * neither capture nor flags, and reports progress on its standard error.
 */

import type { Subprocess } from "bun";
import { AppError } from "../lib/errors.ts";

export type JobKind = "create" | "verify";

export interface Job {
  id: string;
  kind: JobKind;
  /** The backup that is verified; null while one is created. */
  name: string | null;
  state: "running" | "done" | "failed";
  startedAt: Date;
  finishedAt: Date | null;
  /** Human-readable progress. */
  step: string | null;
  /** Bytes; 0 of 0 when unknown. */
  done: number;
  total: number;
  error: string | null;
  /** Output of the command. */
  result: Record<string, unknown> | null;
}

/** Another job is running. */
export class JobRunningError extends AppError {
  readonly code = "job_running";
  constructor() {
    super("Another backup operation is running. Wait until it has finished.");
  }
}

/** Number of finished jobs to remember. */
const finishedMax = 20;
/** Output beyond this is cut off. */
const outputBytesMax = 4 * 1024 * 1024;
const lineBytesMax = 64 * 1024;

type Child = Subprocess<"ignore", "pipe", "pipe">;

export class Jobs {
  private readonly jobs: Job[] = [];
  private child: Child | undefined;
  private running: Promise<void> = Promise.resolve();

  /** Every remembered job, newest first. */
  list(): Job[] {
    return [...this.jobs].reverse();
  }

  find(id: string): Job | undefined {
    return this.jobs.find((job) => job.id === id);
  }

  /**
   * Starts a command; one at a time.
   *
   * @throws {JobRunningError}
   */
  start(kind: JobKind, name: string | null, command: readonly string[], now: Date): Job {
    if (this.jobs.some(({ state }) => state === "running")) throw new JobRunningError();
    const job: Job = {
      id: Bun.randomUUIDv7(),
      kind,
      name,
      state: "running",
      startedAt: now,
      finishedAt: null,
      step: null,
      done: 0,
      total: 0,
      error: null,
      result: null,
    };
    this.jobs.push(job);
    if (this.jobs.length > finishedMax) this.jobs.shift();
    this.running = this.run(job, command);
    return job;
  }

  /** Ends the running job; the next backup removes its leftovers. */
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
        toDisplayString(child.stdout),
        eachLine(child.stderr, (line) => {
          if (!line.startsWith('{"step":')) complaint = line.replace(/^flagkeep: /, "");
          else Object.assign(job, JSON.parse(line));
        }),
        child.exited,
      ]);
      if (code === 0) Object.assign(job, { state: "done", result: JSON.parse(output) });
      else
        Object.assign(job, {
          state: "failed",
          error: complaint || `The process exited with status ${code}.`,
        });
    } catch (error) {
      Object.assign(job, { state: "failed", error: (error as Error).message });
    } finally {
      this.child = undefined;
      job.finishedAt = new Date();
    }
  }
}

/**
 * Runs a command and returns its output as JSON, whatever its exit code.
 *
 * @param environment secrets that process lists must not show, in addition to this process's variables.
 */
export async function toJson(
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    env: { ...process.env, ...environment },
  });
  return JSON.parse(await toDisplayString(child.stdout));
}

async function toDisplayString(stream: ReadableStream<Uint8Array>): Promise<string> {
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
