/** Commands that are interrupted by a signal. */

import { expect, test } from "bun:test";
import { join } from "node:path";

const module = join(import.meta.dir, "../../src/lib/cancellation.ts");

/** Runs a script that has begun when it says so, tells it to stop, and returns what it said. */
async function interrupted(script: string) {
  const child = Bun.spawn(
    [process.execPath, "-e", `import { onInterrupt } from ${JSON.stringify(module)};\n${script}`],
    { stdout: "pipe", stderr: "pipe" },
  );
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let said = "";
  for (let isReported = false; ; ) {
    const { value, done } = await reader.read();
    if (done) break;
    said += decoder.decode(value);
    if (!isReported && said.includes("begun\n")) {
      isReported = true;
      child.kill("SIGTERM");
    }
  }
  return { said: said.trim().split("\n"), code: await child.exited };
}

test("what began last is cleaned up first; what has ended is not", async () => {
  const script = `
    onInterrupt(() => console.log("outer"));
    onInterrupt(() => console.log("ended"))();
    onInterrupt(() => console.log("inner"));
    setInterval(() => {}, 1000);
    console.log("begun");`;
  expect(await interrupted(script)).toEqual({ said: ["begun", "inner", "outer"], code: 1 });
});

test("work that must not be cut off ends first", async () => {
  const script = `
    onInterrupt(() => console.log("outer"));
    const stop = onInterrupt(undefined);
    process.on("SIGTERM", () => setTimeout(() => {
      console.log("whole");
      stop();
    }, 1));
    setInterval(() => {}, 1000);
    console.log("begun");`;
  expect(await interrupted(script)).toEqual({ said: ["begun", "whole", "outer"], code: 1 });
});
