/** Runs `bun test` with the given arguments and ends with one line that names what skipped tests are missing. */

import { skippedSummary } from "./skipped-summary.ts";

const child = Bun.spawn([process.execPath, "test", ...process.argv.slice(2)], {
  stdin: "inherit",
  stdout: "pipe",
  stderr: "pipe",
  env: { ...process.env, FORCE_COLOR: process.stdout.isTTY ? "1" : (process.env.FORCE_COLOR ?? "0") },
});
const summary = skippedSummary();

/** Passes lines through as they come, except those that the summary replaces. */
async function forward(from: ReadableStream<Uint8Array>, to: NodeJS.WriteStream): Promise<void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of from) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (!summary.replaces(line)) to.write(`${line}\n`);
  }
  if (rest !== "" && !summary.replaces(rest)) to.write(rest);
}

const [, , status] = await Promise.all([
  forward(child.stdout, process.stdout),
  forward(child.stderr, process.stderr),
  child.exited,
]);
const line = summary.line();
if (line !== undefined) console.log(line);
process.exitCode = status;
