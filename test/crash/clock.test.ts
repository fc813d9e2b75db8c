/** The system's clock steps while events stream in: nothing is lost, doubled or out of order, and the server continues. */

import { expect } from "bun:test";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { isAllowed, testWhen } from "../support/skipped.ts";

const libraries = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
);
const library = isAllowed("libfaketime") ? libraries.find(existsSync) : undefined;

const hour = 3_600;
/** Seconds that the clock is off, one after the other; among them the hour of summer time and ten years. */
const steps = [-hour, hour, 2 * hour, -2 * hour, 315_360_000, -315_360_000, 0];
const perStep = 60;

testWhen(library !== undefined, "clock steps", "libfaketime is not installed")(
  "by an hour and by ten years, to and fro, and a start with each clock",
  async () => {
    const folder = temporaryFolder();
    const offset = join(folder, "offset");
    const setClock = (seconds: number) => writeFileSync(offset, `${seconds < 0 ? "" : "+"}${seconds}\n`);
    setClock(0);
    const through = [
      "env",
      `LD_PRELOAD=${library}`,
      `FAKETIME_TIMESTAMP_FILE=${offset}`,
      "FAKETIME_NO_CACHE=1",
      // As the system's does, only the calendar's clock steps.
      "FAKETIME_DONT_FAKE_MONOTONIC=1",
    ];
    const isClock = async (seconds: number) => {
      const date = (await fetch(`${server.url}/_liveness`)).headers.get("date")!;
      return Math.abs(Date.parse(date) - Date.now() - seconds * 1_000) < 60_000;
    };
    let server = await ServerProcess.start({ through });
    const { directory } = server;
    const sent: { uuid: string; historical: boolean }[] = [];
    const send = async (historical: boolean) => {
      const items = Array.from({ length: perStep / 4 }, () => ({
        event: "tick",
        distinct_id: `user-${sent.length % 7}`,
        uuid: Bun.randomUUIDv7(),
        ...(historical ? { timestamp: "2025-05-05T05:05:05Z" } : {}),
        properties: { $set: { last: sent.length } },
      }));
      const { status } = await server.batch(items, { historical_migration: historical });
      expect(status).toBe(200);
      for (const { uuid } of items) sent.push({ uuid, historical });
    };
    await using _running = { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
    for (const [index, seconds] of steps.entries()) {
      setClock(seconds);
      await until(() => isClock(seconds), "the server has the clock");
      for (let part = 0; part < 4; part++) await send(part % 2 === 1);
      const flags = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: "user-1" });
      expect(flags.status).toBe(200);
      // Every other time the next clock is met by a start, after a kill.
      if (index % 2 === 0) continue;
      await server.kill();
      server = await ServerProcess.start({ through, directory });
    }
    const stored = await server.eventsWhenStored(sent.length);
    for (const historical of [false, true]) {
      const uuids = (list: { uuid: string; historical: boolean }[]) =>
        list.filter((one) => one.historical === historical).map(({ uuid }) => uuid);
      expect(uuids(stored.toSorted((one, other) => one.seq - other.seq))).toEqual(uuids(sent));
    }
    const [persons] = await server.query("SELECT count(*)::INTEGER AS n FROM persons");
    expect(persons).toEqual({ n: 7 });
    expect(await server.stop()).toBe(0);
    for (const path of [folder, directory.dataDir]) rmSync(path, { recursive: true, force: true });
  },
  120_000,
);
