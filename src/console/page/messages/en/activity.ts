/** Messages of the activity log. */

import { counted } from "../../lib/format.ts";

/** One and several items of a scope. */
const scopeNames: Record<string, readonly [one: string, many: string]> = {
  FeatureFlag: ["flag", "flags"],
  Experiment: ["experiment", "experiments"],
  EarlyAccessFeature: ["early access feature", "early access features"],
  Survey: ["survey", "surveys"],
  Cohort: ["cohort", "cohorts"],
  Dashboard: ["dashboard", "dashboards"],
  Insight: ["insight", "insights"],
  Annotation: ["note", "notes"],
  ShareLink: ["share link", "share links"],
  Webhook: ["webhook", "webhooks"],
  Project: ["project", "projects"],
  Team: ["project", "projects"],
  Organization: ["organization", "organizations"],
  OrganizationMembership: ["member", "members"],
  PersonalAPIKey: ["personal key", "personal keys"],
  Role: ["role", "roles"],
  User: ["person", "people"],
};

export const activity = {
  triggers: {
    command_line: (user) => `the command line (user ${user})`,
    scheduled_change: () => "a scheduled change",
    guardrail: () => "a guardrail",
    rollback_condition: () => "a rollback condition",
    survey_schedule: () => "the schedule of a survey",
    sign_in: (address) => `a client at ${address}`,
  } as Record<string, (id: string) => string>,
  server: "the server",
  approval: (proposer: string, approver: string) => `proposed by ${proposer}, approved by ${approver}`,
  field: (field: string, before: string, after: string) =>
    `${field.replaceAll("_", " ")}: ${before} → ${after}`,
  fieldName: (field: string) => field.replaceAll("_", " "),
  compare: "Before and after",
  before: "Before",
  after: "After",
  changesSummary: (count: number, scope: string) => {
    const [one, many] = scopeNames[scope] ?? ["item", "items"];
    return counted(count, one, many);
  },
  show: (count: number) => `Show ${counted(count, "change", "changes")}`,
  switchedOn: "turned on",
  switchedOff: "turned off",
  verbs: {
    created: "created",
    updated: "updated",
    deleted: "deleted",
    restored: "restored",
    activated: "turned on",
    deactivated: "turned off",
    link_created: "created a sign-in link for",
    password_set: "set the password of",
    sign_in_failed: "failed to sign in as",
  } as Record<string, string>,
  scopes: Object.fromEntries(Object.entries(scopeNames).map(([scope, [one]]) => [scope, one])) as Record<
    string,
    string
  >,
  nothingFound: "No change matches.",
  empty: "Nothing has changed yet.",
  emptyHelp: "Every change of a flag, cohort, dashboard, key or member is kept here.",
  project: "This project",
  organization: "Organization",
  where: "Where",
  kind: "Kind",
  allKinds: "All kinds",
  by: "Changed by",
  anyUser: "Anyone",
  system: "System and CLI",
  object: "Object",
  anyObject: "All objects",
  since: "Since",
  times: { "": "All time", 1: "24 hours", 7: "7 days", 30: "30 days" } as Record<string, string>,
  person: "Person or item",
  exportCsv: "CSV",
  more: "Show older",
  onlyLoaded: (count: number) => `Searches the ${counted(count, "change", "changes")} shown here.`,
};
