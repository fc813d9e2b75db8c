/** The capture routes behind a real socket: what only happens between two ends of a connection. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import type { Server } from "bun";
import { listen } from "../../src/http/server.ts";
import { anyToken, FakeJournal, startCapture } from "./support.ts";

const mib = 1024 * 1024;
const bodyText = JSON.stringify({ api_key: anyToken, event: "e", distinct_id: "d" });

let journal: FakeJournal;
let port: number;
let server: Server<undefined>;
let defects: unknown[];
const slowBodyLimitMs = 200;

beforeAll(() => {
  const { app, unexpected } = startCapture({
    journal: { append: (...args: Parameters<FakeJournal["append"]>) => journal.append(...args) },
    limits: { bytesMax: 2 * mib, patienceMs: slowBodyLimitMs },
    trustedProxies: ["127.0.0.0/8"],
  });
  defects = unexpected;
  server = listen(app, { hostname: "127.0.0.1", port: 0, bodyBytesMax: 2 * mib });
  port = server.port!;
});
beforeEach(() => {
  journal = new FakeJournal();
  defects.length = 0;
});
afterAll(() => server.stop(true));

const send = (path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", ...init });

/** Writes bytes and reads until the other end closes. */
function exchange(chunks: readonly (string | Uint8Array)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.on("data", (bytes) => {
      answer += bytes;
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
    for (const chunk of chunks) socket.write(chunk);
  });
}

/** Sends one byte after the other, never to the end, until the other end has had enough. */
function dribble(path: string, length: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    const byte = length.startsWith("Transfer") ? "1\r\nx\r\n" : "x";
    const timer = setInterval(() => socket.write(byte), slowBodyLimitMs / 8);
    socket.on("data", (bytes) => {
      answer += bytes;
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(timer);
      resolve(answer);
    });
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${anyToken}\r\n${length}\r\n\r\n`,
    );
  });
}

const status = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

describe("over a socket", () => {
  test("an event arrives with the client's address", async () => {
    expect(await (await send("/e/", { body: bodyText })).text()).toBe('{"status":"Ok"}');
    await send("/e/", { body: bodyText, headers: { "x-forwarded-for": "10.0.0.1, 203.0.113.9" } });
    expect(journal.events.map(({ properties }) => properties)).toEqual([
      { $ip: "127.0.0.1" },
      { $ip: "203.0.113.9" },
    ]);
  });

  test("a chunked body arrives, compressed or not", async () => {
    for (const bytes of [Buffer.from(bodyText), gzipSync(bodyText)]) {
      const half = bytes.length >> 1;
      const chunks = [bytes.subarray(0, half), bytes.subarray(half)];
      const answer = await exchange([
        "POST /batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        ...chunks.flatMap((chunk) => [`${chunk.length.toString(16)}\r\n`, chunk, "\r\n"]),
        "0\r\n\r\n",
      ]);
      expect(status(answer)).toBe(200);
    }
    expect(journal.events).toHaveLength(2);
  });

  test("a client that waits for 100 Continue gets it", async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      let received = "";
      let isBodySent = false;
      socket.on("data", (bytes) => {
        received += bytes;
        if (received.includes("100 Continue") && !isBodySent) {
          isBodySent = true;
          socket.write(bodyText);
        }
      });
      socket.on("close", () => resolve(received));
      socket.on("error", reject);
      socket.write(
        `POST /batch HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: ${bodyText.length}\r\nConnection: close\r\n\r\n`,
      );
    });
    expect(answer).toContain("HTTP/1.1 200");
    expect(journal.events).toHaveLength(1);
  });

  test("a body over the limit gets 413 with any form of length, and nothing breaks", async () => {
    const large = Buffer.alloc(3 * mib, 65);
    expect((await send("/e/", { body: large })).status).toBe(413);
    expect((await send("/e/", { body: gzipSync(large) })).status).toBe(413);
    const answer = await exchange([
      "POST /batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
      `${large.length.toString(16)}\r\n`,
      large,
      "\r\n0\r\n\r\n",
    ]);
    expect(status(answer)).toBe(413);
    expect((await send("/e/", { body: bodyText })).status).toBe(200);
    expect(journal.events).toHaveLength(1);
  });

  test("after a rejected body the same connection continues", async () => {
    const large = 3 * mib;
    const answer = await exchange([
      `POST /e/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${large}\r\n\r\n`,
      Buffer.alloc(large, 65),
      `POST /e/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bodyText.length}\r\nConnection: close\r\n\r\n${bodyText}`,
    ]);
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 413", "HTTP/1.1 200"]);
  });

  test("replay bodies are read and forgotten", async () => {
    expect((await send("/s/", { body: Buffer.alloc(40 * mib) })).status).toBe(200);
    expect((await send("/s/", { body: Buffer.alloc(65 * mib) })).status).toBe(413);
    expect(journal.appends).toEqual([]);
  });

  test("clients that disconnect within a body do no harm", async () => {
    const heads = [
      `Content-Length: ${bodyText.length}\r\n\r\n${bodyText.slice(0, 9)}`,
      `Transfer-Encoding: chunked\r\n\r\n5\r\n${bodyText.slice(0, 5)}\r\n`,
      "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
      "Content-Length: 5000000\r\n\r\nxx",
    ];
    await Promise.all(
      ["/batch", "/s/", "/i/v1/analytics/events"].flatMap((path) =>
        heads.map(
          (head) =>
            new Promise<void>((resolve) => {
              const socket = connect(port, "127.0.0.1", () => {
                socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${head}`, () => socket.destroy());
              });
              socket.on("error", () => {});
              socket.on("close", () => resolve());
            }),
        ),
      ),
    );
    expect((await send("/e/", { body: bodyText })).status).toBe(200);
    expect(defects).toEqual([]);
    expect(journal.events).toHaveLength(1);
  });

  test("clients that dribble are cut off", async () => {
    const long = 600 * 1024;
    const answers = await Promise.all(
      ["/batch", "/s/", "/i/v1/analytics/events"].flatMap((path) =>
        [`Content-Length: ${bodyText.length}`, `Content-Length: ${long}`, "Transfer-Encoding: chunked"].map(
          (length) => dribble(path, length),
        ),
      ),
    );
    expect(answers.map(status)).toEqual(Array(9).fill(408));
    expect(defects).toEqual([]);
  });

  test("a slow client that makes progress is waited for", async () => {
    const body = Buffer.from(bodyText.padEnd(300 * 1024));
    const chunks = 12;
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      let received = "";
      let sent = 0;
      socket.on("data", (bytes) => {
        received += bytes;
      });
      socket.on("close", () => resolve(received));
      socket.on("error", reject);
      socket.write(
        `POST /e/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      );
      const timer = setInterval(() => {
        const size = Math.ceil(body.length / chunks);
        socket.write(body.subarray(sent * size, (sent + 1) * size));
        if (++sent === chunks) clearInterval(timer);
      }, slowBodyLimitMs / 4);
    });
    expect(status(answer)).toBe(200);
    expect(journal.events).toHaveLength(1);
  });

  test("OPTIONS and unknown methods get a response", async () => {
    for (const [method, expected] of [
      ["OPTIONS", 200],
      ["PUT", 405],
      ["PROPFIND", 405],
    ] as const) {
      const answer = await exchange([
        `${method} /e/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      ]);
      expect([method, status(answer)]).toEqual([method, expected]);
    }
  });
});
