import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NotFoundError } from "../../src/lib/errors.ts";
import { RpcError } from "../../src/rpc/client.ts";
import { callControl, controlSocketName } from "../../src/rpc/control.ts";
import { type RpcHandlers, RpcServer } from "../../src/rpc/server.ts";

const home = process.cwd();
const folders: string[] = [];
afterEach(() => {
  process.chdir(home);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function listening(routes: RpcHandlers) {
  const folder = mkdtempSync(join(tmpdir(), "flagkeep-test-"));
  folders.push(folder);
  writeFileSync(join(folder, controlSocketName), "left by a crash");
  const server = new RpcServer(controlSocketName);
  process.chdir(folder);
  server.listen(routes);
  return { folder, server };
}

test("a command calls the server and gets a response, until the server stops", async () => {
  const { folder, server } = listening({ echo: (request) => ({ request }), nothing: () => undefined });
  expect(statSync(join(folder, controlSocketName)).mode & 0o777).toBe(0o600);
  expect(await callControl<unknown>(folder, "echo", { a: 1 })).toEqual({ request: { a: 1 } });
  expect(await callControl<unknown>(folder, "echo")).toEqual({ request: null });
  expect(await callControl<unknown>(folder, "nothing")).toBeNull();
  expect(process.cwd()).toBe(folder);
  await server.stop();
  expect(existsSync(join(folder, controlSocketName))).toBe(false);
  expect(await callControl(folder, "echo")).toBeUndefined();
});

test("failed and unknown calls are reported with a hint", async () => {
  const { folder, server } = listening({
    fail: () => {
      throw new NotFoundError("Not found.");
    },
  });
  const error = await callControl(folder, "fail").catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RpcError);
  expect(error).toMatchObject({ code: "not_found", message: "Not found." });
  for (const name of ["unknown", "constructor"]) {
    expect(await callControl(folder, name).catch((thrown: unknown) => thrown)).toMatchObject({
      code: "not_known",
    });
  }
  await server.stop();
});
