import { describe, expect, test } from "bun:test";
import { readConfig, readSetting, unknownVariables } from "../src/config/read.ts";
import { environmentName, type SettingName, settings, workerCount } from "../src/config/settings.ts";
import { InvalidSettingError } from "../src/lib/setting-types.ts";

describe("settings", () => {
  test("every default is accepted by its own check", () => {
    expect(Object.keys(readConfig({}, {}))).toEqual(Object.keys(settings));
  });

  test("the command line wins over the environment, which wins over the default", () => {
    const environment = { FLAGKEEP_PORT: "9000", FLAGKEEP_HOST: "" };
    expect(readSetting("port", { port: "9001" }, environment)).toBe(9001);
    expect(readSetting("port", {}, environment)).toBe(9000);
    expect(readSetting("host", {}, environment)).toBe("127.0.0.1");
  });

  test("the variables that Kubernetes sets for a service called flagkeep are no settings", () => {
    const environment = {
      FLAGKEEP_PORT: "tcp://10.96.0.7:80",
      FLAGKEEP_PORT_80_TCP: "tcp://10.96.0.7:80",
      FLAGKEEP_PORT_80_TCP_ADDR: "10.96.0.7",
      FLAGKEEP_PORT_80_TCP_PORT: "80",
      FLAGKEEP_PORT_80_TCP_PROTO: "tcp",
      FLAGKEEP_SERVICE_HOST: "10.96.0.7",
      FLAGKEEP_SERVICE_PORT: "80",
      FLAGKEEP_SERVICE_PORT_HTTP: "80",
      FLAGKEEP_NODES_PORT: "tcp://10.96.0.8:8000",
    };
    expect(readConfig({}, environment)).toEqual(readConfig({}, {}));
    expect(unknownVariables(environment)).toEqual([]);
    expect(unknownVariables({ ...environment, FLAGKEEP_PORTS: "1" })).toEqual(["FLAGKEEP_PORTS"]);
  });

  test("every setting has a help text", () => {
    for (const [name, setting] of Object.entries(settings)) {
      expect(environmentName(name)).toMatch(/^FLAGKEEP_[A-Z][A-Z0-9_]+$/);
      expect(setting.help).toMatch(/\.$/);
    }
  });

  const readings: [SettingName, string, unknown][] = [
    ["journal-segment-size", "64MiB", 67_108_864],
    ["journal-segment-size", "1.5 MB", 1_500_000],
    ["journal-flush-interval", "0", 0],
    ["journal-flush-interval", "5ms", 5],
    ["query-timeout", "2m", 120_000],
    ["public-url", "https://flags.example.com/", "https://flags.example.com"],
    ["trusted-proxies", "10.0.0.0/8, ::1", ["10.0.0.0/8", "::1"]],
    ["log-format", "json", "json"],
  ];
  for (const [name, text, value] of readings) {
    test(`${name} ${text}`, () => expect(readSetting(name, { [name]: text }, {})).toEqual(value as never));
  }

  const mistakes: [SettingName, string][] = [
    ["port", "99999"],
    ["port", "-1"],
    ["port", "http"],
    ["host", "not a host"],
    ["data-dir", ""],
    ["log-format", "xml"],
    ["log-level", "loud"],
    ["backup-schedule", "sometimes"],
    ["journal-segment-size", "12"],
    ["journal-segment-size", "1KiB"],
    ["journal-seal-interval", "2 days"],
    ["body-limit", "20 potatoes"],
    ["duckdb-threads", "0"],
    ["public-url", "flags.example.com"],
    ["trusted-proxies", "everyone"],
  ];
  for (const [name, text] of mistakes) {
    test(`${name} must not be "${text}"`, () => {
      const reading = () => readSetting(name, { [name]: text }, {});
      expect(reading).toThrow(InvalidSettingError);
      expect(reading).toThrow(`--${name} is "${text}", but it must be `);
    });
  }

  test("a mistake in the environment names the variable", () => {
    expect(() => readSetting("port", {}, { FLAGKEEP_PORT: "x" })).toThrow('FLAGKEEP_PORT is "x"');
  });
});

describe("HTTP workers", () => {
  const MiB = 1024 ** 2;
  const shared = { hosts: [], user: "", password: "", database: "" } as never;
  test.each([
    { workers: null, cpus: 1, budget: null, count: 1 },
    { workers: null, cpus: 2, budget: null, count: 1 },
    { workers: null, cpus: 4, budget: null, count: 2 },
    { workers: null, cpus: 64, budget: null, count: 8 },
    { workers: null, cpus: 64, budget: 512 * MiB, count: 1 },
    { workers: null, cpus: 64, budget: 1_600 * MiB, count: 3 },
    { workers: 5, cpus: 1, budget: 512 * MiB, count: 5 },
    { workers: 1, cpus: 64, budget: null, count: 1 },
    { workers: null, cpus: 64, budget: null, count: 1, "postgres-url": shared },
  ])("%p", ({ workers, cpus, budget, count, ...more }) => {
    const config = { workers, "postgres-url": null, ...more };
    expect(workerCount(config, budget, cpus)).toBe(count);
  });
});
