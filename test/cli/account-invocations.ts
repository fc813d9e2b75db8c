/** Invocations of commands of keys, projects, users, members and roles. */

import { type Invocation, missing, type WrongCall } from "./invocation.ts";

const unknownKey = (says = "Key nope does not exist or is revoked."): WrongCall[] => [
  { args: ["nope"], code: 1, says },
  missing("id"),
];
const changedProject = (more: string[] = []): WrongCall[] => [
  { args: ["99", ...more], code: 1, says: "Project 99 does not exist." },
  { args: ["one", ...more], code: 2, says: "positive integer" },
];

export const accountInvocations: Record<string, Invocation> = {
  "keys create": {
    args: () => ["--user", "owner@example.com", "--label", "new", "--scope", "*", "--expires", "90d"],
    wrong: [
      { args: [], code: 2, says: "--scope" },
      { args: ["--scope", "everything"], code: 1, says: "--user" },
      { args: ["--scope", "nonsense", "--user", "owner@example.com"], code: 2, says: "nonsense" },
      { args: ["--scope", "*", "--user", "nobody@example.com"], code: 2, says: "nobody@example.com" },
      { args: ["--scope", "*", "--expires", "soon"], code: 2, says: "90d" },
      {
        args: ["--scope", "*", "--user", "owner@example.com", "--project", "99"],
        code: 1,
        says: "Project 99",
      },
    ],
  },
  "keys list": { args: () => [], wrong: [{ args: ["--jsn"], code: 2, says: "Did you mean --json?" }] },
  "keys show": { args: ({ keys }) => [keys.show!], wrong: unknownKey("Key nope does not exist.") },
  "keys revoke": { args: ({ keys }) => [keys.revoke!], wrong: unknownKey() },
  "keys roll": { args: ({ keys }) => [keys.roll!], wrong: unknownKey() },
  "projects list": { args: () => ["--all"], wrong: [{ args: ["all"], code: 2, says: "too many arguments" }] },
  "projects create": {
    args: () => ["Shop", "--timezone", "Europe/Berlin"],
    wrong: [
      { args: [""], code: 2, says: "name may not be blank" },
      { args: ["Shop", "--timezone", "Mars/Olympus"], code: 2, says: "Mars/Olympus" },
      { args: ["Shop", "--organization", "none"], code: 1, says: "--organization" },
    ],
  },
  "projects rename": { args: () => ["2", "Store"], wrong: changedProject(["Name"]) },
  "projects show-key": { args: () => ["2"], wrong: changedProject() },
  "projects rotate-key": {
    args: () => ["2", "--grace", "0"],
    wrong: [
      ...changedProject(),
      { args: ["2", "--grace", "soon"], code: 2, says: "for example 7d" },
      { args: ["2", "--grace", "91d"], code: 2, says: "maximum is 90d" },
    ],
  },
  "projects revoke-old-key": { args: () => ["2"], wrong: changedProject() },
  "projects retention": {
    args: () => ["2", "400d"],
    wrong: [
      ...changedProject(["400d"]),
      { args: ["2", "400"], code: 2, says: "days, for example 400d" },
      { args: ["2", "0d"], code: 2, says: "days, for example 400d" },
    ],
  },
  "projects rotate-secret": { args: () => ["2"], wrong: changedProject() },
  "projects archive": { args: () => ["3"], wrong: changedProject() },
  "users create": {
    args: () => ["new@example.com", "--level", "admin"],
    wrong: [
      { args: ["nobody"], code: 2, says: "valid email" },
      { args: ["new@example.com", "--level", "king"], code: 2, says: "member, admin, owner" },
      missing("email"),
    ],
  },
  "users list": { args: () => [], wrong: [{ args: ["--all"], code: 2, says: "--all" }] },
  "users deactivate": {
    args: () => ["ann@example.com"],
    wrong: [{ args: ["nobody@example.com"], code: 1, says: "nobody@example.com" }],
  },
  "users activate": {
    args: () => ["bob@example.com"],
    wrong: [{ args: ["nobody@example.com"], code: 1, says: "nobody@example.com" }],
  },
  "users level": {
    args: () => ["ann@example.com", "admin"],
    wrong: [
      { args: ["ann@example.com", "king"], code: 2, says: "Allowed choices" },
      { args: ["nobody@example.com", "admin"], code: 1, says: "nobody@example.com is not a member" },
      { args: ["owner@example.com", "member"], code: 2, says: "An organization requires an owner" },
      missing("email"),
    ],
  },
  "users link": {
    args: () => ["carol@example.com", "--level", "admin"],
    wrong: [
      { args: ["no-address"], code: 2, says: "valid email" },
      { args: ["dora@example.com", "--level", "king"], code: 2, says: "Allowed choices" },
      missing("email"),
    ],
  },
  "members list": {
    args: () => [],
    wrong: [{ args: ["--organization", "none"], code: 1, says: "--organization" }],
  },
  "members add": {
    args: () => ["fred@example.com", "--level", "admin"],
    wrong: [
      { args: ["owner@example.com"], code: 2, says: "already a member" },
      { args: ["x@example.com", "--level", "king"], code: 2, says: "Allowed choices" },
      missing("email"),
    ],
  },
  "members set": {
    args: () => ["dan@example.com", "--level", "admin"],
    wrong: [
      { args: ["nobody@example.com", "--level", "admin"], code: 1, says: "not a member" },
      { args: ["owner@example.com"], code: 2, says: "Nothing to change" },
      { args: ["owner@example.com", "--no-is-active"], code: 2, says: "owner" },
    ],
  },
  "members link": {
    args: () => ["dan@example.com"],
    wrong: [{ args: ["nobody@example.com"], code: 1, says: "not a member" }],
  },
  "members remove": {
    args: () => ["eve@example.com"],
    wrong: [
      { args: ["nobody@example.com"], code: 1, says: "not a member" },
      { args: ["owner@example.com"], code: 2, says: "owner" },
    ],
  },
  "roles create": {
    args: () => ["Release"],
    wrong: [{ args: ["Has"], code: 2, says: "already" }, missing("name")],
  },
  "roles list": {
    args: () => [],
    wrong: [{ args: ["--organization", "none"], code: 1, says: "--organization" }],
  },
  "roles set": {
    args: () => ["Has", "--flags-access", "view"],
    wrong: [
      { args: ["Has"], code: 2, says: "Use at least one of --name, --flags-access." },
      { args: ["Has", "--flags-access", "all"], code: 2, says: "view, edit" },
      { args: ["Has", "--name", "x".repeat(201)], code: 2, says: "no more than 200 characters" },
      { args: ["None", "--name", "x"], code: 1, says: "None" },
    ],
  },
  "roles delete": {
    args: () => ["Gone"],
    wrong: [{ args: ["None"], code: 1, says: "None" }, missing("name")],
  },
  "roles add-member": {
    args: () => ["Empty", "ann@example.com"],
    wrong: [
      { args: ["None", "ann@example.com"], code: 1, says: "None" },
      { args: ["Empty", "nobody@example.com"], code: 1, says: "nobody@example.com" },
      { args: ["Empty"], code: 2, says: "email" },
    ],
  },
  "roles remove-member": {
    args: () => ["Has", "ann@example.com"],
    wrong: [{ args: ["Has", "nobody@example.com"], code: 1, says: "does not have the role" }],
  },
};
