/** HTTP workers: whichever of them takes a request, it is the same server. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { getChildren } from "../../support/processes.ts";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";
import { expectWithin } from "../../support/times.ts";

interface Worker {
  pid: number | null;
  up: boolean;
  restarts: number;
}

const count = 3;

async function getWorkers(server: ServerProcess): Promise<Worker[]> {
  const { stdout } = await flagkeep(["status", "--data-dir", server.dataDir, "--json"]);
  return (JSON.parse(stdout) as { workers: Worker[] }).workers;
}

/** A connection of its own, which the system gives to any worker. */
const alone = { headers: { Connection: "close" } };

async function start(...args: string[]): Promise<ServerProcess> {
  return await ServerProcess.start({ args: ["--workers", String(count), ...args] });
}

describe("three workers", () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(async () => await server[Symbol.asyncDispose]());

  const flags = async (distinctId: string, more: object = {}) => {
    const body = JSON.stringify({ token: server.token, distinct_id: distinctId, ...more });
    const response = await fetch(`${server.url}/flags/?v=2`, { method: "POST", body, ...alone });
    return ((await response.json()) as { flags: Record<string, { enabled: boolean }> }).flags;
  };
  const createFlag = async (key: string, more: object = {}) => {
    const filters = { groups: [{ properties: [], rollout_percentage: 100 }] };
    const body = { key, active: true, filters, ...more };
    const response = await server.api("/api/projects/1/feature_flags/", { method: "POST", body });
    expect(response.status).toBe(201);
    return ((await response.json()) as { id: number }).id;
  };

  test("are separate processes, and handle requests", async () => {
    const workers = await getWorkers(server);
    expect(workers).toHaveLength(count);
    expect(new Set(workers.map(({ pid }) => pid)).size).toBe(count);
    expect(workers.every(({ up, restarts }) => up && restarts === 0)).toBe(true);
    const before = await Promise.all(workers.map(({ pid }) => cpuTicks(pid!)));
    await Promise.all(Array.from({ length: 600 }, (_, index) => flags(`spread-${index}`)));
    const after = await Promise.all(workers.map(({ pid }) => cpuTicks(pid!)));
    expect(after.every((ticks, index) => ticks > before[index]!)).toBe(true);
  });

  test("all see a flag change before its response", async () => {
    const id = await createFlag("switched");
    for (let round = 0; round < 25; round++) {
      const active = round % 2 === 1;
      await server.api(`/api/projects/1/feature_flags/${id}/`, { method: "PATCH", body: { active } });
      const seen = await Promise.all(Array.from({ length: 12 }, () => flags("anyone")));
      expect(seen.map((values) => values.switched?.enabled ?? false)).toEqual(Array(12).fill(active));
    }
  });

  test("all see a new project key, and reject a replaced one", async () => {
    const { id, api_token } = (await (
      await server.api("/api/projects/", { method: "POST", body: { name: "second" } })
    ).json()) as { id: number; api_token: string };
    const capture = async (token: string) =>
      (
        await fetch(`${server.url}/capture/`, {
          method: "POST",
          ...alone,
          body: JSON.stringify({ api_key: token, event: "seen", distinct_id: "a" }),
        })
      ).status;
    expect(await Promise.all(Array.from({ length: 9 }, () => capture(api_token)))).toEqual(
      Array(9).fill(200),
    );
    await server.api(`/api/projects/${id}/`, { method: "DELETE" });
    expect(await Promise.all(Array.from({ length: 9 }, () => capture(api_token)))).toEqual(
      Array(9).fill(401),
    );
  });

  test("the events of a connection keep their order", async () => {
    const total = 300;
    for (let index = 0; index < total; index++)
      await server.capture({ event: "ordered", distinct_id: "o", properties: { index } });
    const events = await until(async () => {
      const found = await server.events("order=seq&event=ordered");
      return found.length === total && found;
    }, "they are stored");
    expect(events.map(({ properties }) => properties.index)).toEqual(
      Array.from({ length: total }, (_, i) => i),
    );
  });

  test("a large batch is stored whole", async () => {
    const batch = Array.from({ length: 20_000 }, (_, index) => ({
      event: "large",
      distinct_id: `l${index % 7}`,
      properties: { text: "x".repeat(400), index },
    }));
    expect((await server.batch(batch)).status).toBe(200);
    const [row] = await until(async () => {
      const rows = await server.query("SELECT count(*) AS n FROM events WHERE event = 'large'");
      return Number(rows[0]!.n) === batch.length && rows;
    }, "it is stored");
    expect(Number(row!.n)).toBe(batch.length);
  });

  test("metrics, rejections and unknown keys count the requests of all", async () => {
    const total = async () => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      const counted = /^flagkeep_http_requests_total\{route="\/capture",status="401"\} (\d+)$/m.exec(text);
      return Number(counted?.[1] ?? 0);
    };
    const before = await total();
    const wrong = JSON.stringify({ api_key: "phc_wrongwrongwrongwrong", event: "x", distinct_id: "a" });
    await Promise.all(
      Array.from({ length: 30 }, () =>
        fetch(`${server.url}/capture/`, { method: "POST", body: wrong, ...alone }),
      ),
    );
    expect(await total()).toBe(before + 30);
    const rejections = (await (await server.api("/api/instance/refusals/")).json()) as { results: unknown[] };
    expect(rejections.results).toHaveLength(20);
    const { stdout } = await flagkeep(["warnings", "--data-dir", server.dataDir]);
    expect(stdout).toContain("30");
  });

  test("streams, uploads, HEAD and unknown paths reach the server process", async () => {
    const stream = await fetch(`${server.url}/ofrep/v1/events?key=${server.token}`);
    expect(stream.headers.get("content-type")).toStartWith("text/event-stream");
    const reader = stream.body!.getReader();
    await createFlag("streamed");
    let text = "";
    while (!text.includes("refetchEvaluation")) text += Buffer.from((await reader.read()).value!).toString();
    await reader.cancel();
    const head = await fetch(`${server.url}/console/`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const unknown = await fetch(`${server.url}/nothing-here`);
    expect(unknown.status).toBe(404);
    const large = await server.api("/api/projects/1/feature_flags/", {
      method: "POST",
      body: { key: "x", filters: {}, name: "y".repeat(2 * 1024 * 1024) },
    });
    expect(large.status).toBe(413);
  });

  test("clients cannot claim another address", async () => {
    const origin = encodeURIComponent(JSON.stringify({ peer: "9.9.9.9", isSecure: true, added: [] }));
    const response = await fetch(`${server.url}/`, { headers: { "X-Flagkeep-Origin": origin } });
    expect(((await response.json()) as { documentation: string }).documentation).toBe(`${server.url}/docs`);
  });

  test("a hash-key override of one holds in all", async () => {
    const groups = [{ properties: [], rollout_percentage: 50 }];
    await createFlag("sticky", { filters: { groups }, ensure_experience_continuity: true });
    const anonymous: Record<string, boolean> = {};
    const ids = Array.from({ length: 20 }, (_, index) => `anon-${index}`);
    for (const id of ids) anonymous[id] = (await flags(id)).sticky?.enabled ?? false;
    for (const id of ids) {
      await server.capture({
        event: "$identify",
        distinct_id: `user-${id}`,
        properties: { $anon_distinct_id: id },
      });
    }
    await until(async () => {
      const rows = await server.query("SELECT count(*) AS n FROM events WHERE event = '$identify'");
      return Number(rows[0]!.n) === ids.length;
    }, "they are identified");
    for (const id of ids) {
      const identified = (await flags(`user-${id}`, { $anon_distinct_id: id })).sticky?.enabled ?? false;
      expect([id, identified]).toEqual([id, anonymous[id]!]);
      const again = await Promise.all([1, 2, 3, 4].map(() => flags(`user-${id}`)));
      expect(again.map(({ sticky }) => sticky?.enabled ?? false)).toEqual(Array(4).fill(anonymous[id]!));
    }
  });
});

describe("faults", () => {
  test("an override that the engine does not store applies in all workers", async () => {
    await using server = await start();
    const enabled = async (distinctId: string, more: object = {}) => {
      const body = JSON.stringify({ token: server.token, distinct_id: distinctId, ...more });
      const response = await fetch(`${server.url}/flags/?v=2`, { method: "POST", body, ...alone });
      const { flags } = (await response.json()) as { flags: Record<string, { enabled: boolean }> };
      return flags.sticky!.enabled;
    };
    const filters = { groups: [{ properties: [], rollout_percentage: 50 }] };
    const body = { key: "sticky", active: true, filters, ensure_experience_continuity: true };
    await server.api("/api/projects/1/feature_flags/", { method: "POST", body });
    const anonymous = "anon";
    // Different without an override.
    const other = await until(async () => {
      const one = `user-${crypto.randomUUID()}`;
      return (await enabled(one)) !== (await enabled(anonymous)) && one;
    }, "a user with another value");
    const workers = await server.workerPids();
    const engine = getChildren(server.process.pid).find((pid) => !workers.includes(pid))!;
    process.kill(engine, "SIGSTOP");
    const expected = await enabled(anonymous);
    expect(await enabled(other, { $anon_distinct_id: anonymous })).toBe(expected);
    await until(
      async () => {
        const values = await Promise.all(Array.from({ length: 16 }, () => enabled(other)));
        return values.every((value) => value === expected);
      },
      "all workers have it",
      2_000,
    );
    // It would outlive the server.
    process.kill(engine, "SIGKILL");
  });

  test("a worker that is killed under load is replaced, and nothing acknowledged is lost", async () => {
    await using server = await start();
    const acknowledged: string[] = [];
    let isOver = false;
    const clients = Array.from({ length: 12 }, async (_, client) => {
      while (!isOver) {
        const uuid = Bun.randomUUIDv7();
        try {
          const response = await server.capture({ event: "load", distinct_id: `c${client}`, uuid });
          if (response.status === 200) acknowledged.push(uuid);
        } catch {
          // The connection of the killed worker.
        }
      }
    });
    for (let round = 0; round < 4; round++) {
      const before = acknowledged.length;
      const workers = await until(async () => {
        const states = await getWorkers(server);
        return states.every(({ up }) => up) && states;
      }, "all workers are up");
      process.kill(workers[round % count]!.pid!, "SIGKILL");
      await until(() => acknowledged.length > before + 200, "events are taken meanwhile");
    }
    const restarts = await until(async () => {
      const states = await getWorkers(server);
      return states.every(({ up }) => up) && states.reduce((sum, { restarts }) => sum + restarts, 0);
    }, "the last one is replaced");
    expect(restarts).toBe(4);
    isOver = true;
    await Promise.all(clients);
    const stored = await until(async () => {
      const found = new Set((await server.events("event=load&order=seq")).map(({ uuid }) => uuid));
      return acknowledged.every((uuid) => found.has(uuid)) && found;
    }, "all acknowledged events are stored");
    expect(stored.size).toBeGreaterThanOrEqual(acknowledged.length);
  });

  test("a worker that hangs is replaced within 5 s", async () => {
    await using server = await start();
    await expectWithin(5_500, async (restartClock) => {
      const [hung] = await until(async () => {
        const workers = await getWorkers(server);
        return workers[0]!.up && workers;
      }, "it is up");
      process.kill(hung!.pid!, "SIGSTOP");
      restartClock();
      await until(() => !existsSync(`/proc/${hung!.pid}`), "it is killed", 15_000);
    });
    await until(async () => (await getWorkers(server))[0]!.up, "it is replaced");
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => fetch(`${server.url}/_liveness`, alone).then(({ status }) => status)),
    );
    expect(new Set(answers)).toEqual(new Set([200]));
  });

  test("workers exit with a server process that is killed, and the next one starts on the same port", async () => {
    await using server = await start();
    const workers = await getChildren(server.process.pid);
    const port = new URL(server.url).port;
    await server.kill();
    await until(() => workers.every((pid) => !existsSync(`/proc/${pid}`)), "they have exited");
    const args = ["--workers", String(count), "--port", port];
    await using next = await ServerProcess.start({ directory: server.directory, args });
    expect(next.url).toBe(server.url);
    expect((await next.capture({ event: "again", distinct_id: "a" })).status).toBe(200);
    const stored = await next.eventsWhenStored(1);
    expect(stored[0]!.event).toBe("again");
  });

  test("a stop finishes requests in flight and leaves no socket", async () => {
    await using server = await start();
    let isOver = false;
    const acknowledged: string[] = [];
    const clients = Array.from({ length: 6 }, async () => {
      while (!isOver) {
        const uuid = Bun.randomUUIDv7();
        try {
          if ((await server.capture({ event: "late", distinct_id: "a", uuid })).status === 200)
            acknowledged.push(uuid);
        } catch {
          isOver = true;
        }
      }
    });
    await until(() => acknowledged.length > 100, "events are taken");
    expect(await server.stop()).toBe(0);
    isOver = true;
    await Promise.all(clients);
    for (const name of ["http.sock", "journal.sock", "control.sock"])
      expect(existsSync(join(server.dataDir, name))).toBe(false);
    await using next = await ServerProcess.start({ directory: server.directory });
    const stored = new Set((await next.eventsWhenStored(acknowledged.length)).map(({ uuid }) => uuid));
    expect(acknowledged.filter((uuid) => !stored.has(uuid))).toEqual([]);
  });

  test("a second server on the port is rejected", async () => {
    await using server = await start();
    const other = await flagkeep([
      "serve",
      "--data-dir",
      `${server.dataDir}-other`,
      "--workers",
      "2",
      "--port",
      new URL(server.url).port,
    ]);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain("cannot be listened on");
  });
});

test.each([
  [["--workers", "0"], "a number from 1 to 64"],
  [["--workers", "65"], "a number from 1 to 64"],
  [
    ["--workers", "2", "--postgres-url", "postgres://a@localhost/b"],
    "--workers must be 1 with --postgres-url",
  ],
])("%p is rejected", async (args, message) => {
  const { code, stderr } = await flagkeep(["serve", "--data-dir", "/nonexistent/x", ...args]);
  expect([code, stderr.includes(message)]).toEqual([2, true]);
});

/** Processor time of a process, in hundredths of a second. */
async function cpuTicks(pid: number): Promise<number> {
  const stat = await Bun.file(`/proc/${pid}/stat`).text();
  const fields = stat.split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
