/** Closing the person store truncates its log, also while others read. */

import { expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { closePersons, openPersons } from "../../src/persons/open.ts";
import { temporaryFolder } from "../support/server.ts";

const getSize = (path: string) => (existsSync(path) ? statSync(path).size : 0);

function writtenStore() {
  const path = join(temporaryFolder(), "people.sqlite");
  const writer = openPersons(path);
  writer.$client.run("CREATE TABLE filler (text TEXT)");
  writer.$client.run("INSERT INTO filler VALUES (?)", ["x".repeat(1_000_000)]);
  expect(getSize(`${path}-wal`)).toBeGreaterThan(1_000_000);
  return { path, writer };
}

test("a reader that closes last leaves no log", () => {
  const { path, writer } = writtenStore();
  const reader = openPersons(path, { readonly: true });
  expect(reader.$client.query("SELECT count(*) AS n FROM filler").get()).toEqual({ n: 1 });
  closePersons(writer);
  expect(getSize(`${path}-wal`)).toBe(0);
  reader.$client.close();
  expect([getSize(path) > 1_000_000, getSize(`${path}-wal`)]).toEqual([true, 0]);
});

test("concurrent readers are not awaited, and lose nothing", () => {
  const { path, writer } = writtenStore();
  const reader = openPersons(path, { readonly: true });
  reader.$client.run("BEGIN");
  expect(reader.$client.query("SELECT count(*) AS n FROM filler").get()).toEqual({ n: 1 });
  writer.$client.run("INSERT INTO filler VALUES ('later')");
  closePersons(writer);
  expect(reader.$client.query("SELECT count(*) AS n FROM filler").get()).toEqual({ n: 1 });
  reader.$client.close();
  const next = openPersons(path);
  expect(next.$client.query("SELECT count(*) AS n FROM filler").get()).toEqual({ n: 2 });
  closePersons(next);
});
