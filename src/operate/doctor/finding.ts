import { type Static, Type } from "@sinclair/typebox";
import { nullable, strictObject } from "../../lib/schema.ts";

const checks = [
  "permissions",
  "disk",
  "clock",
  "files",
  "flags",
  "events",
  "fronts",
  "journal",
  "archive",
  "backup",
  "quarantine",
  "port",
] as const;
const levels = ["ok", "warning", "error"] as const;

export const Finding = strictObject({
  check: Type.Union(checks.map((check) => Type.Literal(check))),
  level: Type.Union(levels.map((level) => Type.Literal(level))),
  message: Type.String(),
  /** How to fix it; null when nothing is wrong. */
  hint: nullable(Type.String()),
});
export type Finding = Static<typeof Finding>;

export const ok = (check: Finding["check"], message: string): Finding => ({
  check,
  level: "ok",
  message,
  hint: null,
});

export const warning = (check: Finding["check"], message: string, hint: string): Finding => ({
  check,
  level: "warning",
  message,
  hint,
});

export const failure = (check: Finding["check"], message: string, hint: string): Finding => ({
  check,
  level: "error",
  message,
  hint,
});
