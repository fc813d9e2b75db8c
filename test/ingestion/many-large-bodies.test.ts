/** Many large bodies of minimal events at once: each is answered, and the server's memory has a limit. */

import { expect, test } from "bun:test";
import { getMemory, getTree } from "../support/processes.ts";
import { ServerProcess } from "../support/server.ts";

const eventsPerBody = 600_000;
const bodies = 20;
const memoryMax = 1.2 * 1024 ** 3;

test("20 bodies of 600,000 events over 20 connections: 200 or 503 with Retry-After, below 1.2 GiB", async () => {
  await using server = await ServerProcess.start();
  const event = '{"event":"a","distinct_id":"b"}';
  const all = Array(eventsPerBody).fill(event).join(",");
  const body = Buffer.from(`{"api_key":"${server.initialized.project.api_key}","batch":[${all}]}`);
  let peakBytes = 0;
  const measure = setInterval(() => {
    const bytes = getTree(server.process.pid).reduce((sum, pid) => sum + getMemory(pid), 0);
    peakBytes = Math.max(peakBytes, bytes);
  }, 100);
  try {
    const send = async () => {
      const headers = { "Content-Type": "application/json", Connection: "close" };
      const answer = await fetch(`${server.url}/batch/`, { method: "POST", headers, body });
      const wait = answer.headers.get("Retry-After");
      await answer.text();
      return answer.status === 503 && wait !== null ? "wait" : answer.status;
    };
    const answers = await Promise.all(Array.from({ length: bodies }, send));
    expect(answers.filter((answer) => answer !== 200 && answer !== "wait")).toEqual([]);
    expect(answers).toContain(200);
  } finally {
    clearInterval(measure);
  }
  expect(peakBytes).toBeGreaterThan(0);
  expect(peakBytes).toBeLessThan(memoryMax);
}, 180_000);
