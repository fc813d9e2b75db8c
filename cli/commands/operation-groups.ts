/** Command groups that consist of operations. Each loads its operations lazily. */

import type { Command } from "commander";
import { operationCommand, operationGroup } from "../operations/command.ts";
import type { OpenStores } from "../operations/local-stores.ts";

/** Other commands start without the code of flags. */
async function flagStores(): Promise<OpenStores> {
  const { FlagStores } = await import("../operations/flag-stores.ts");
  return (metadata, options) => new FlagStores(metadata, options);
}

export async function activity(): Promise<Command> {
  const { activityOperations } = await import("../../src/operations/activity.ts");
  return operationGroup(
    "activity",
    "Show changes of a project and of the organization.",
    ["activity list --scope FeatureFlag"],
    activityOperations,
  );
}

export async function annotations(): Promise<Command> {
  const { annotationOperations } = await import("../../src/operations/annotations.ts");
  return operationGroup(
    "annotations",
    "Manage annotations, which charts show at their time.",
    ['annotations create "New checkout"', "annotations list"],
    annotationOperations,
  );
}

export async function dashboards(): Promise<Command> {
  const { dashboardCommands, dashboardOperations } = await import("../../src/operations/dashboards.ts");
  return operationGroup(
    "dashboards",
    "List, show, create and delete dashboards.",
    ["dashboards list", "dashboards show Orders --url http://127.0.0.1:8000"],
    [...dashboardOperations, ...dashboardCommands],
  );
}

export async function insights(): Promise<Command> {
  const { insightCommands, insightOperations } = await import("../../src/operations/insights.ts");
  return operationGroup(
    "insights",
    "List, show, create and delete insights.",
    ["insights list", "insights show 3fAbC9xY --url http://127.0.0.1:8000"],
    [...insightOperations, ...insightCommands],
  );
}

export async function events(): Promise<Command> {
  const { definitionOperations } = await import("../../src/operations/definitions.ts");
  return operationGroup(
    "events",
    "Show the names of events and of their properties; `flagkeep query` shows events.",
    ["events definitions --search order", "events properties --type person"],
    definitionOperations,
  );
}

export async function experiments(): Promise<Command> {
  const { experimentOperations } = await import("../../src/operations/experiments.ts");
  return operationGroup(
    "experiments",
    "Manage experiments and show their results.",
    ["experiments list", "experiments launch 7"],
    experimentOperations,
    await flagStores(),
  );
}

export async function features(): Promise<Command> {
  const { earlyAccessOperations, setStage } = await import("../../src/operations/early-access.ts");
  return operationGroup(
    "features",
    "Manage early access features, in which persons enroll.",
    ["features list", "features stage new-editor beta"],
    [...earlyAccessOperations, setStage],
    await flagStores(),
  );
}

export async function imports(): Promise<Command> {
  const { importOperations } = await import("../../src/operations/imports.ts");
  return operationGroup(
    "imports",
    "Show the imports of a server; `flagkeep import` runs one.",
    ["imports list --url http://127.0.0.1:8000"],
    importOperations,
  );
}

/** Without a subcommand, the list. */
export async function members(): Promise<Command> {
  const { listAllMembers, memberOperations } = await import("../../src/operations/members.ts");
  return operationGroup(
    "members",
    "Manage the members of the organization.",
    ["members list", "members add ann@example.com --level admin"],
    memberOperations.filter((memberOperation) => memberOperation !== listAllMembers),
  ).addCommand(operationCommand(listAllMembers), { isDefault: true });
}

export async function organization(): Promise<Command> {
  const { organizationOperations } = await import("../../src/operations/organizations.ts");
  return operationGroup(
    "organization",
    "Update organization settings.",
    ["organization set --flags-access view"],
    organizationOperations,
  );
}

export async function roles(): Promise<Command> {
  const { roleOperations } = await import("../../src/operations/roles.ts");
  return operationGroup(
    "roles",
    "Manage roles, which grant flag editing where members can only view.",
    ["roles create Editors", "roles add-member Editors ann@example.com"],
    roleOperations,
  );
}

export async function shareLinks(): Promise<Command> {
  const { shareLinkOperations } = await import("../../src/operations/share-links.ts");
  return operationGroup(
    "share-links",
    "Manage links that show a dashboard, an insight or Overview without signing in.",
    ["share-links create --dashboard 3 --name Board", "share-links revoke 1"],
    shareLinkOperations,
  );
}

export async function surveys(): Promise<Command> {
  const { surveyResultOperations } = await import("../../src/operations/survey-results.ts");
  const { surveyOperations } = await import("../../src/operations/surveys.ts");
  return operationGroup(
    "surveys",
    "Manage surveys, which posthog-js shows on pages, and show their results.",
    ["surveys list", "surveys start Satisfaction"],
    [...surveyOperations, ...surveyResultOperations],
    await flagStores(),
  );
}
