/** Backups in an S3-compatible store: whatever the store does, there is always a good backup somewhere. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getDestination } from "../../src/backup/destination.ts";
import type { ListedBackup } from "../../src/backup/list.ts";
import { bucket, s3Environment, TestS3 } from "../support/s3.ts";
import { flagkeep, initializedDirectory, temporaryFolder } from "../support/server.ts";

let s3: TestS3;
let dataDir: string;
const folder = temporaryFolder();
beforeAll(async () => {
  s3 = await TestS3.start();
  ({ dataDir } = await initializedDirectory());
  Object.assign(process.env, s3Environment);
});
afterAll(async () => {
  for (const name of Object.keys(s3Environment)) delete process.env[name];
  await s3[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true });
  rmSync(folder, { recursive: true });
});

function backup(...args: string[]) {
  s3.requests = [];
  return flagkeep(
    ["backup", ...args, "--backup-s3-endpoint", s3.endpoint, "--data-dir", dataDir, "--json"],
    s3Environment,
  );
}

async function listed(place: string): Promise<ListedBackup[]> {
  return JSON.parse((await backup("list", place)).stdout) as ListedBackup[];
}

const unsent = () => join(dataDir, "backups-unsent");

describe("a bucket as the destination", () => {
  test("create, list, verify, restore and prune", async () => {
    const place = `s3://${bucket}/some/prefix`;
    const first = await backup("create", place);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    const second = JSON.parse((await backup("create", place)).stdout) as { file: string; bytes: number };
    expect(second.file).toStartWith(`${place}/flagkeep-`);
    // Read back before it counts.
    expect(s3.requests.filter((request) => request.startsWith("GET"))).toHaveLength(1);
    const all = await listed(place);
    expect(all.map(({ file, verified }) => ({ file, verified }))).toEqual([
      { file: second.file, verified: true },
      { file: JSON.parse(first.stdout).file, verified: true },
    ]);
    expect(all[0]).toMatchObject({ bytes: second.bytes, events: 0, problem: null });
    expect(await backup("verify", second.file)).toMatchObject({ code: 0 });
    const target = join(folder, "restored");
    const restored = await flagkeep(
      ["backup", "restore", second.file, "--backup-s3-endpoint", s3.endpoint, "--data-dir", target],
      s3Environment,
    );
    expect(restored).toMatchObject({ code: 0 });
    expect(existsSync(join(target, "flagkeep.sqlite"))).toBe(true);
    const pruned = JSON.parse((await backup("prune", place, "--keep-last", "1")).stdout);
    expect(pruned.removed).toMatchObject([{ file: JSON.parse(first.stdout).file }]);
    expect(await listed(place)).toHaveLength(1);
    // Nothing of it is kept here.
    expect(readdirSync(join(dataDir, "backup-work")).filter((name) => !name.startsWith("lock"))).toEqual([]);
    expect(existsSync(unsent())).toBe(false);
  }, 30_000);

  test("a call fails, and all calls after it: the verified file stays local", async () => {
    const place = `s3://${bucket}/failing`;
    const good = JSON.parse((await backup("create", place)).stdout) as { file: string };
    const calls = s3.requests.length;
    expect(calls).toBeGreaterThanOrEqual(3);
    for (let n = 1; n <= calls; n++) {
      s3.fails = (number) => (number >= n ? "error" : undefined);
      const { code, stdout, stderr } = await backup("create", place);
      s3.fails = () => undefined;
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      const retained = /is kept as (\S+)\. /.exec(stderr)?.[1];
      expect(readdirSync(unsent()).map((name) => join(unsent(), name))).toEqual([retained!]);
      expect((await listed(place)).filter(({ file }) => file === good.file)).toMatchObject([
        { verified: true },
      ]);
      const state = await flagkeep(["status", "--data-dir", dataDir, "--json"]);
      expect(JSON.parse(state.stdout).last_backup).toMatchObject({
        file: good.file,
        error: expect.stringContaining("kept"),
      });
    }
    const [name] = readdirSync(unsent());
    expect(await backup("verify", join(unsent(), name!))).toMatchObject({ code: 0 });
    // The next good one makes it superfluous.
    expect(await backup("create", place)).toMatchObject({ code: 0 });
    expect(existsSync(unsent())).toBe(false);
  }, 60_000);

  test("no credentials, a foreign endpoint and a wrong address are rejected in a sentence", async () => {
    const place = `s3://${bucket}/none`;
    const without = await flagkeep(["backup", "create", place, "--data-dir", dataDir], { HOME: folder });
    expect(without).toMatchObject({ code: 1, stdout: "" });
    expect(without.stderr).toContain("AWS_ACCESS_KEY_ID");
    const state = await flagkeep(["status", "--data-dir", dataDir, "--json"]);
    expect(JSON.parse(state.stdout).last_backup.error).toContain("S3 credentials are missing.");
    const anonymous = await flagkeep(
      ["backup", "list", place, "--backup-s3-endpoint", "http://127.0.0.1:1", "--data-dir", dataDir],
      s3Environment,
    );
    expect(anonymous).toMatchObject({ code: 1, stdout: "" });
    expect(anonymous.stderr.trimEnd()).not.toContain("\n");
    expect((await backup("create", "s3://")).code).toBe(1);
    expect((await backup("verify", `${place}/nothing.tar.zst`)).stderr).toContain("does not exist");
  });

  test("rejections and overload of a store are not mistaken for missing objects", async () => {
    const settings = { endpoint: s3.endpoint, region: "", credentialsFile: "" };
    const destination = getDestination(`s3://${bucket}/busy`, settings);
    await destination.putChunk("pieces/x", Buffer.from("some bytes"));
    const opened = () =>
      destination.open("pieces/x").then(
        ({ bytes }) => bytes,
        ({ code, message }: { code: string; message: string }) => ({ code, message }),
      );
    s3.requests = [];
    s3.fails = (number) => (number === 1 ? "error" : undefined);
    expect(await opened()).toBe("some bytes".length);
    s3.fails = () => "error";
    // The answer to HEAD has no words of its own.
    expect(await opened()).toMatchObject({
      code: "destination_failed",
      message: expect.stringContaining("InternalError"),
    });
    s3.fails = () => undefined;
    expect(await destination.open("pieces/y").catch(({ code }: { code: string }) => code)).toBe(
      "backup_not_found" as never,
    );
  });

  test("credentials can be read from a file", async () => {
    const file = join(folder, "credentials");
    writeFileSync(
      file,
      "[other]\naws_access_key_id = x\n[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n",
    );
    const { code } = await flagkeep(
      [
        "backup",
        "list",
        `s3://${bucket}`,
        "--backup-s3-endpoint",
        s3.endpoint,
        "--backup-s3-credentials-file",
        file,
        "--data-dir",
        dataDir,
      ],
      { HOME: folder },
    );
    expect(code).toBe(0);
  });
});

/** Of more than one part, so that there are more calls to fail at. */
describe("an upload of several parts", () => {
  const name = "flagkeep-2026-01-02T03-04-05.678Z.tar.zst";
  const content = Buffer.alloc(18 * 1024 * 1024, "some bytes of a backup ");
  const sha256 = createHash("sha256").update(content).digest("hex");
  const path = join(folder, "parts", name);
  const put = async (prefix: string) => {
    s3.requests = [];
    const settings = { endpoint: s3.endpoint, region: "", credentialsFile: "" };
    const destination = getDestination(`s3://${bucket}/${prefix}`, settings);
    const error = await destination
      .put({ path, bytes: content.length, sha256 }, () => undefined)
      .then(
        () => undefined,
        (failure: Error) => failure,
      );
    return { destination, error };
  };
  const isThere = async ({ destination }: Awaited<ReturnType<typeof put>>) => {
    s3.fails = () => undefined;
    return (await destination.list()).includes(name);
  };
  beforeAll(() => {
    mkdirSync(join(folder, "parts"));
    writeFileSync(path, content);
  });

  test("any single call fails once: the upload is complete and equal", async () => {
    const whole = await put("parts-0");
    expect(whole.error).toBeUndefined();
    const calls = s3.requests.length;
    expect(s3.requests.filter((request) => request.startsWith("PUT")).length).toBeGreaterThan(1);
    for (let n = 1; n <= calls; n++) {
      s3.fails = (number) => (number === n ? "error" : undefined);
      const result = await put(`parts-${n}`);
      expect({ n, error: result.error }).toEqual({ n, error: undefined });
      expect(await isThere(result)).toBe(true);
      expect(readFileSync(path).equals(content)).toBe(true);
    }
  }, 60_000);

  test("also of a chunk", async () => {
    const settings = { endpoint: s3.endpoint, region: "", credentialsFile: "" };
    const destination = getDestination(`s3://${bucket}/piece`, settings);
    s3.requests = [];
    s3.fails = (number) => (number === 1 ? "error" : undefined);
    await destination.putChunk(`pieces/${"0".repeat(64)}.zst`, content.subarray(0, 1_000));
    s3.fails = () => undefined;
    expect(await destination.chunks()).toMatchObject(new Map([[`${"0".repeat(64)}.zst`, { bytes: 1_000 }]]));
  });

  for (const kind of ["cut", "flip"] as const) {
    test(`what is read back ${kind === "cut" ? "is cut off" : "has one other bit"}: it is rejected and removed`, async () => {
      s3.fails = (_, request) => (request.method === "GET" ? kind : undefined);
      const result = await put(`parts-${kind}`);
      expect(result.error).toMatchObject({ code: "destination_failed" });
      expect(await isThere(result)).toBe(false);
      expect(existsSync(path)).toBe(true);
    }, 30_000);
  }
});
