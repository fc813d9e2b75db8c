import { expect, test } from "bun:test";
import { parsePostgresUrl, postgresUrl, redactPostgresUrl } from "../../src/lib/store-urls.ts";

test("several hosts, a password with special characters, and default port and names", () => {
  const parsed = parsePostgresUrl("postgresql://me:s3cr%2Ft@pg1,pg2:6432,[::1]:7000/flags?sslmode=require")!;
  expect(parsed).toEqual({
    hosts: [
      { host: "pg1", port: 5432 },
      { host: "pg2", port: 6432 },
      { host: "::1", port: 7000 },
    ],
    user: "me",
    password: "s3cr/t",
    database: "flags",
    tls: true,
  });
  expect(redactPostgresUrl(parsed)).toBe("postgres://me@pg1:5432,pg2:6432,[::1]:7000/flags");
  expect(parsePostgresUrl(postgresUrl(parsed))).toEqual(parsed);
  expect(parsePostgresUrl("postgres://pg/flags")).toMatchObject({
    user: "flagkeep",
    password: "",
    tls: false,
  });
});

test.each([
  "",
  "pg1/flags",
  "mysql://pg/flags",
  "postgres:///flags",
  "postgres://pg",
  "postgres://pg/",
  "postgres://pg/flags/more",
  "postgres://pg:0/flags",
  "postgres://pg:65536/flags",
  "postgres://pg,/flags",
  "postgres://pg/flags?sslmode=verify-full",
  "postgres://pg/flags?options=-c",
  "postgres://%zz@pg/flags",
  "postgres://p g/flags",
  `postgres://${Array.from({ length: 9 }, () => "pg").join(",")}/flags`,
])("%p is no address", (text) => {
  expect(parsePostgresUrl(text)).toBeUndefined();
});
