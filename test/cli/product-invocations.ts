/** Invocations of commands of experiments, features, surveys, annotations, share links and webhooks. */

import { type Invocation, inProject, missing, projectNotANumber, unknownProject } from "./invocation.ts";

const unknownCohort = { args: inProject("99"), code: 1, says: "Cohort 99 does not exist." } as const;

export const productInvocations: Record<string, Invocation> = {
  "cohorts create": {
    args: () => inProject("Created", "--is-static"),
    wrong: [
      missing("name"),
      { args: inProject("X", "--filters", "{"), code: 2, says: "--filters is not valid JSON" },
      { ...unknownProject, args: ["X", ...unknownProject.args] },
    ],
  },
  "cohorts show": { args: () => inProject("1"), wrong: [{ ...unknownCohort }, missing("id")] },
  "cohorts sizes": { args: () => inProject("1"), wrong: [{ ...unknownCohort }, missing("id")] },
  "cohorts set": {
    args: () => inProject("1", "--name", "Renamed"),
    wrong: [
      { args: inProject("99", "--name", "X"), code: 1, says: "Cohort 99 does not exist." },
      { args: inProject("1"), code: 2, says: "Nothing to change" },
    ],
  },
  "cohorts delete": { args: () => inProject("2"), wrong: [{ ...unknownCohort }, missing("id")] },
  "experiments list": {
    args: () => inProject("--status", "running"),
    wrong: [
      unknownProject,
      projectNotANumber,
      { args: inProject("--status", "odd"), code: 2, says: "Allowed choices" },
      { args: inProject("--archived", "odd"), code: 2, says: "Allowed choices are false, true, all" },
    ],
  },
  "experiments show": {
    args: () => inProject("To launch"),
    wrong: [
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
      missing("experiment"),
    ],
  },
  "experiments create": {
    args: () => inProject("Checkout", "--feature-flag-key", "checkout-test"),
    wrong: [
      {
        args: inProject("x", "--primary-metrics", "{"),
        code: 2,
        says: "--primary-metrics is not valid JSON.",
      },
      { args: inProject("x", "--feature-flag-key", "first"), code: 2, says: "2 to 20 variants" },
      missing("name"),
    ],
  },
  "experiments launch": {
    args: () => inProject("To launch"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "must be reset" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments pause": {
    args: () => inProject("To pause"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "must be reset" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments resume": {
    args: () => inProject("Paused"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "must be reset" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments end": {
    args: () => inProject("To end"),
    wrong: [
      { args: inProject("Ended"), code: 2, says: "has already ended" },
      { args: inProject("nope"), code: 1, says: "Experiment nope does not exist." },
    ],
  },
  "experiments ship": {
    args: () => inProject("To ship", "test"),
    wrong: [
      { args: inProject("To ship", "none"), code: 2, says: 'has no variant "none"' },
      missing("experiment"),
    ],
  },
  "experiments reset": {
    args: () => inProject("To reset"),
    wrong: [{ args: inProject("Draft"), code: 2, says: "must be launched" }, missing("experiment")],
  },
  "experiments archive": {
    args: () => inProject("Ended"),
    wrong: [{ args: inProject("Draft"), code: 2, says: "Experiment must be ended" }, missing("experiment")],
  },
  "experiments unarchive": {
    args: () => inProject("Archived"),
    wrong: [{ args: inProject("Draft"), code: 2, says: "is not archived" }, missing("experiment")],
  },
  "features list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "features create": {
    args: () => inProject("New editor", "--stage", "beta"),
    wrong: [
      { args: inProject("x"), code: 2, says: "required option '--stage <value>'" },
      { args: inProject("x", "--stage", "gamma"), code: 2, says: "Allowed choices" },
      {
        args: inProject("x", "--stage", "beta", "--payload", "{"),
        code: 2,
        says: "--payload must be a JSON object.",
      },
    ],
  },
  "features stage": {
    args: () => inProject("Staged", "alpha"),
    wrong: [
      { args: inProject("nope", "alpha"), code: 1, says: "Early access feature nope does not exist." },
      { args: inProject("Staged", "gamma"), code: 2, says: "gamma" },
      missing("feature"),
    ],
  },
  "surveys list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "surveys show": {
    args: () => inProject("To start"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Survey nope does not exist." }, missing("survey")],
  },
  "surveys create": {
    args: ({ folder }) => inProject("From a file", "-f", `${folder}/survey.yaml`),
    wrong: [
      { args: inProject("x", "-f", "/nowhere.yaml"), code: 1, says: "/nowhere.yaml" },
      { args: inProject("x", "--type", "popover"), code: 2, says: "required option '--questions <json>'" },
      { args: inProject("x", "--type", "letter"), code: 2, says: "Allowed choices" },
      { args: inProject("x", "--type", "api", "--questions", "["), code: 2, says: "not valid JSON" },
      { args: inProject("x", "--type", "api", "--questions", "[]"), code: 2, says: "1 to 50 questions" },
      missing("name"),
    ],
  },
  "surveys start": {
    args: () => inProject("To start"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Survey nope does not exist." }, missing("survey")],
  },
  "surveys stop": {
    args: () => inProject("To stop"),
    wrong: [
      { args: inProject("Draft"), code: 2, says: "`end_date` must be after `start_date`." },
      missing("survey"),
    ],
  },
  "annotations list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "annotations create": {
    args: () => inProject("New checkout", "--at", "2026-03-04T12:00:00Z"),
    wrong: [
      { args: inProject(" "), code: 2, says: "may not be blank" },
      { args: inProject("x", "--scope", "all"), code: 2, says: "Allowed choices" },
      { args: inProject("x", "--scope", "dashboard"), code: 2, says: "This scope requires it." },
      missing("content"),
    ],
  },
  "annotations update": {
    args: () => inProject("1", "--content", "Newer checkout"),
    wrong: [
      { args: inProject("1"), code: 2, says: "Use at least one of --content" },
      { args: inProject("99", "--content", "x"), code: 1, says: "Annotation 99 does not exist." },
    ],
  },
  "annotations delete": {
    args: () => inProject("2"),
    wrong: [{ args: inProject("99"), code: 1, says: "Annotation 99 does not exist." }, missing("id")],
  },
  "share-links list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "share-links create": {
    args: () => inProject("--dashboard", "1", "--name", "Wall"),
    wrong: [
      { args: inProject(), code: 2, says: "Send one of" },
      { args: inProject("--dashboard", "999"), code: 2, says: 'Invalid pk "999"' },
      { args: inProject("--dashboard", "1", "--password", "short"), code: 2, says: "at least 8" },
    ],
  },
  "share-links revoke": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Share link 99 does not exist." }, missing("id")],
  },
  "webhooks list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "webhooks create": {
    args: () =>
      inProject(
        "--webhook-url",
        "https://93.184.215.14/hook",
        "--events",
        "flag_changed,spike",
        "--no-active",
      ),
    wrong: [
      { args: inProject(), code: 2, says: "required option '--webhook-url <url>'" },
      { args: inProject("--webhook-url", "ftp://x"), code: 2, says: "Enter a URL such as" },
      { args: inProject("--webhook-url", "http://127.0.0.1/"), code: 2, says: "127.0.0.1 is an address of" },
      { args: inProject("--webhook-url", "https://8.8.8.8/", "--events", "none"), code: 2, says: "none" },
      {
        args: inProject("--webhook-url", "https://8.8.8.8/", "--template", "{"),
        code: 2,
        says: "not valid JSON",
      },
    ],
  },
  "webhooks update": {
    args: () => inProject("1", "--name", "Releases"),
    wrong: [
      { args: inProject("1"), code: 2, says: "Use at least one of --name, --webhook-url" },
      { args: inProject("99", "--name", "x"), code: 1, says: "Webhook 99 does not exist." },
    ],
  },
  "webhooks enable": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks disable": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks delete": {
    args: () => inProject("2"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks rotate-secret": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks test": {
    args: () => inProject("3"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
  "webhooks deliveries": {
    args: () => inProject("3"),
    wrong: [{ args: inProject("99"), code: 1, says: "Webhook 99 does not exist." }, missing("id")],
  },
};
