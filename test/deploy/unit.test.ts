/** The service of systemd and the image say what the executable understands. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { validate } from "dockerfile-utils";
import { readConfig } from "../../src/config/read.ts";
import { environmentName, type SettingName, settings } from "../../src/config/settings.ts";
import { executable, flagkeep, temporaryFolder } from "../support/server.ts";
import { installedProgram, testWhen } from "../support/skipped.ts";

const deploy = join(import.meta.dir, "../../deploy");
const unitText = readFileSync(join(deploy, "flagkeep.service"), "utf8");
const dockerText = readFileSync(join(deploy, "Dockerfile"), "utf8");
const defaults = readConfig({}, {});

/** `Name=value` lines; a name may come twice. */
const unit = Object.groupBy(
  unitText.split("\n").filter((line) => /^[A-Z]\w+=/.test(line)),
  (line) => line.slice(0, line.indexOf("=")),
);
const setting = (name: string) => unit[name]?.map((line) => line.slice(name.length + 1)).join(" ");

/** Instructions, their continued lines joined. */
const instructions = dockerText
  .replaceAll("\\\n", "")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)] as const);
const getArguments = (name: string) => instructions.filter(([one]) => one === name).map(([, rest]) => rest);

/** Commands and options as they are called in a text. */
async function expectKnown(call: string) {
  const [, ...words] = call.split(/\s+/);
  const names = words.slice(0, words.findIndex((word) => word.startsWith("-")) >>> 0);
  const { stdout, code } = await flagkeep([...names, "--help"]);
  expect({ call, code }).toEqual({ call, code: 0 });
  for (const [option] of call.matchAll(/--[a-z-]+/g)) expect(stdout).toContain(`${option} `);
}

test("what the service starts exists", async () => {
  const call = setting("ExecStart")!;
  expect(call).toStartWith("/usr/local/bin/flagkeep serve --data-dir %S/flagkeep");
  await expectKnown(call);
  expect(setting("StateDirectory")).toBe("flagkeep");
});

test("calls in the remarks of the files exist", async () => {
  const text = `${unitText}\n${dockerText}\n${readFileSync(join(deploy, "../docs/operations/upgrades.md"), "utf8")}`;
  const calls = [...text.matchAll(/(?:^|[`\s])(flagkeep (?:[a-z]+(?=[ `]) ?)+(?:[^#`\n]*))/gm)]
    .map(([, call]) => call!)
    .filter((call) =>
      /^flagkeep (backup|keys|status|healthcheck|serve|migrate|export|import|doctor|version)\b/.test(call),
    );
  expect(calls.length).toBeGreaterThan(8);
  for (const call of calls) await expectKnown(call.replace(/(?<=(export events|import)) \S+\.ndjson/, ""));
});

test("the service is shut in, and the compiler of the JavaScript engine is not", () => {
  for (const name of ["NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictNamespaces"])
    expect(setting(name)).toBe("yes");
  expect(setting("ProtectSystem")).toBe("strict");
  expect(setting("CapabilityBoundingSet")).toBe("");
  expect(setting("SystemCallFilter")).toBe("@system-service");
  expect(setting("User")).not.toBe("root");
  expect(setting("MemoryDenyWriteExecute")).toBeUndefined();
  expect(setting("WatchdogSec")).toBeUndefined();
});

test("the service is given the time that a stop takes, and is restarted", () => {
  const seconds = Number(/^(\d+)s$/.exec(setting("TimeoutStopSec")!)![1]);
  expect(seconds * 1_000).toBeGreaterThan(defaults["shutdown-timeout"] + 10_000);
  expect(setting("Restart")).toBe("always");
  expect(setting("OOMPolicy")).toBe("continue");
});

testWhen(
  installedProgram("systemd-analyze") !== undefined,
  "the service read by systemd",
  "no systemd-analyze",
)("systemd finds nothing wrong with the service", async () => {
  const path = join(temporaryFolder(), "flagkeep.service");
  await Bun.write(path, unitText.replace("ExecStart=/usr/local/bin/flagkeep", `ExecStart=${executable}`));
  const { stderr, exitCode } = Bun.spawnSync(["systemd-analyze", "verify", path]);
  expect({ stderr: stderr.toString(), exitCode }).toEqual({ stderr: "", exitCode: 0 });
});

test("the image's file is well-formed", () => {
  expect(validate(dockerText)).toEqual([]);
  expect(validate(dockerText.replace("USER", "USR")).map(({ message }) => message)).toEqual([
    "Unknown instruction: USR",
  ]);
});

test("the image runs as no one in particular, on a folder that is its own", () => {
  const user = getArguments("USER").at(-1)!;
  expect(user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  const [folder] = getArguments("VOLUME");
  const [uid, gid] = user.split(":");
  expect(getArguments("RUN")).toEqual([`install -d -m 0700 -o ${uid} -g ${gid} ${folder}`]);
  expect(getArguments("FROM")).toEqual([expect.stringMatching(/^debian:\d+\.\d+-slim$/)]);
  expect(getArguments("COPY")).toEqual([`--chmod=0755 $\{EXECUTABLE} /usr/local/bin/flagkeep`]);
});

test("the image's context has executables, and neither sources nor a data directory", () => {
  const lines = readFileSync(join(deploy, "../.dockerignore"), "utf8").split("\n");
  const rules = lines.filter((line) => line !== "" && !line.startsWith("#"));
  expect(rules[0]).toBe("*");
  const isSent = (path: string) => rules.slice(1).some((rule) => new Bun.Glob(rule.slice(1)).match(path));
  const [fallback] = getArguments("ARG").map((line) => line.replace("EXECUTABLE=", ""));
  expect(
    [fallback, "flagkeep-0.2.0-linux-x64", "data", "src", ".git"].map((path) => isSent(path!.split("/")[0]!)),
  ).toEqual([true, true, false, false, false]);
});

test("the image's settings, port and health check are the executable's", async () => {
  const names = new Map(
    (Object.keys(settings) as SettingName[]).map((name) => [environmentName(name), name] as const),
  );
  const environment = Object.fromEntries(
    getArguments("ENV")
      .flatMap((line) => line.trim().split(/\s+/))
      .map((pair) => pair.split("=") as [string, string]),
  );
  for (const name of Object.keys(environment)) expect(names.has(name)).toBe(true);
  const config = readConfig({}, environment);
  expect(config.host).toBe("0.0.0.0");
  expect([config["data-dir"]]).toEqual(getArguments("VOLUME"));
  expect(getArguments("EXPOSE")).toEqual([String(config.port)]);
  const [check] = getArguments("HEALTHCHECK");
  const [, command] = check!.split("CMD ");
  expect(JSON.parse(getArguments("ENTRYPOINT")[0]!)).toEqual(["flagkeep"]);
  for (const words of [
    JSON.parse(command!),
    ["flagkeep", ...JSON.parse(getArguments("CMD")[0]!)],
  ] as string[][])
    await expectKnown(words.join(" "));
});
