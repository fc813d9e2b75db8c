/** Members of an organization (contract: management-api 2.6). */

import { type Static, Type } from "@sinclair/typebox";
import { exampleKey, KeyBody, keyBody } from "../accounts/api/key-schemas.ts";
import { exampleMember, levels, MemberBody, memberBody } from "../accounts/api/user-schemas.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { revokeKey } from "../accounts/personal-keys.ts";
import {
  addMember,
  getMember,
  type Invitation,
  inviteMember,
  isGranting,
  keysOfMember,
  type Actor as MemberActor,
  removeMember,
  updateMember,
} from "../accounts/sessions/members.ts";
import { setupAddress } from "../accounts/sessions/setup-links.ts";
import { listMembers, membershipLevels } from "../accounts/users.ts";
import { notFound } from "../http/http-error.ts";
import {
  bool,
  dateTime,
  intEnum,
  list,
  named,
  nullable,
  object,
  optional,
  pageOf,
  string,
  uuid,
} from "../http/schemas.ts";
import { toApiTime } from "../lib/time.ts";
import {
  type CommandArgument,
  type CommandOption,
  getAuthor,
  type Lookup,
  listOperation,
  type OrganizationContext,
  operation,
  slicePage,
} from "./operation.ts";

type Context = OrganizationContext<{ metadata: Metadata }>;
type MemberRecord = Static<typeof MemberBody>;

const tag = "Organizations";
const scope = "organization_member:write";
const NewMemberBody = named(
  "NewOrganizationMember",
  object({
    ...MemberBody.properties,
    console_url: nullable(
      string({ description: "A one-time link; null for a user who can already sign in." }),
    ),
    expires_at: nullable(dateTime()),
  }),
);
const LinkBody = named("OneTimeLink", object({ console_url: string(), expires_at: dateTime() }));
const exampleLink = {
  console_url: "…/console/setup#3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzB",
  expires_at: "2026-03-02T12:00:00.000000Z",
};

const levelNames = new Map<number, string>(
  Object.entries(membershipLevels).map(([name, level]) => [level, name]),
);
/** A level outside the known ones, set by another system, is shown as its number. */
const levelName = (level: number) => levelNames.get(level) ?? String(level);

export const listAllMembers = listOperation({
  id: "members.list",
  on: "organization",
  scope: "organization_member:read",
  tag,
  summary: "List the members of an organization",
  http: { method: "GET", path: "/members", answer: "One page of members." },
  cli: {
    name: "members list",
    description: "List the members of the organization and their levels.",
    examples: ["members list --json"],
    formerJson: {
      // The API's `id` is that of the membership, its `level` a number.
      properties: { id: Type.Integer(), email: Type.String(), level: Type.String() },
      build: ({ user, level }: MemberRecord) => ({
        id: user.id,
        email: user.email,
        level: levelName(level),
      }),
    },
    table: {
      headings: ["id", "email", "level", "state", "joined"],
      row: ({ user, level, is_active: isActive, joined_at: joinedAt }: MemberRecord) => [
        String(user.id),
        user.email,
        levelName(level),
        isActive ? "active" : "inactive",
        joinedAt.slice(0, 10),
      ],
    },
  },
  input: object({}),
  output: pageOf("OrganizationMemberPage", MemberBody),
  example: exampleMember,
  run: ({ stores: { metadata }, organization }: Context, { limit, offset }) => {
    const members = listMembers(metadata.db, organization.id);
    return slicePage(members, { limit, offset }, (member) => memberBody(metadata.db, member));
  },
});

/** A member's user by e-mail address. */
export const memberByEmail: Lookup = {
  in: () => listAllMembers,
  matches: ({ user }: MemberRecord, email) => user.email.toLowerCase() === email.trim().toLowerCase(),
  value: ({ user }: MemberRecord) => user.uuid,
  missing: (email) => `${email} is not a member of the organization.`,
};

const emailArgument: CommandArgument = {
  name: "email",
  description: "e-mail address of a member",
  member: "uuid",
  lookup: memberByEmail,
};
const levelOption: CommandOption = {
  flags: "--level <level>",
  description: "organization level",
  choices: Object.keys(membershipLevels),
  parse: (level: string) => membershipLevels[level as keyof typeof membershipLevels],
};
/** Settings that determine the address of one-time links. */
const linkSettings = ["host", "port", "public-url"] as const;
const summarize = ({ user, level, is_active: isActive }: MemberRecord) =>
  `${user.email} is ${level === membershipLevels.member ? "a" : "an"} ${levelName(level)}${isActive ? "" : ", inactive"}.`;
const linkHint = "The link works once, for 24 hours:";

const addNewMember = operation({
  id: "members.create",
  on: "organization",
  scope,
  tag,
  summary: "Add a member to an organization",
  description:
    "Returns a one-time link: its holder chooses the password. Admins and owners only, for levels up to their own. The link becomes invalid when its creator loses the permission to create it.",
  http: { method: "POST", path: "/members", status: 201, answer: "The new member.", makesCredential: true },
  cli: {
    name: "members add",
    description: "Add a member, and print a one-time link for a new user.",
    examples: ["members add ann@example.com --level admin"],
    settings: linkSettings,
    arguments: [{ name: "email", description: "e-mail address", member: "email" }],
    options: {
      level: { ...levelOption, description: "organization level; default: member" },
      first_name: { flags: "--first-name <name>", description: "first name of a new user" },
      last_name: { flags: "--last-name <name>", description: "last name of a new user" },
    },
    done: (member: Static<typeof NewMemberBody>) =>
      `${summarize(member)}${member.console_url === null ? "" : `\n${linkHint}\n${member.console_url}`}`,
  },
  input: object({
    email: string({ max: 320 }),
    level: optional(intEnum(levels)),
    first_name: optional(string({ blank: true, max: 150 })),
    last_name: optional(string({ blank: true, max: 150 })),
  }),
  inputExample: { email: "bob@example.com", level: 1 },
  output: NewMemberBody,
  example: { ...exampleMember, level: 1 as const, has_password: false, ...exampleLink },
  run: async (context: Context, { email, level = membershipLevels.member, first_name, last_name }) => {
    const { metadata } = context.stores;
    const fields = { email, level, firstName: first_name || undefined, lastName: last_name };
    const { member, invitation } = addMember(metadata, getActor(context), fields);
    const link = invitation && (await linkBody(context, invitation));
    return { ...memberBody(metadata.db, member), ...(link ?? { console_url: null, expires_at: null }) };
  },
});

const byUuid = object({ uuid: uuid() });

const getOneMember = operation({
  id: "members.get",
  on: "organization",
  scope: "organization_member:read",
  tag,
  summary: "Get a member",
  description: "By the user's uuid or by the membership's id.",
  http: { method: "GET", path: "/members/:uuid", answer: "The member." },
  input: byUuid,
  output: MemberBody,
  example: exampleMember,
  run: ({ stores: { metadata }, organization }: Context, { uuid: id }) =>
    memberBody(metadata.db, getMember(metadata.db, organization.id, id)),
});

const memberChange = {
  level: optional(intEnum(levels)),
  is_active: optional(bool()),
};

const updateOneMember = operation({
  id: "members.update",
  on: "organization",
  scope,
  tag,
  summary: "Update the level of a member, or deactivate the member",
  description:
    "Admins and owners only; admins cannot update owners. The last owner cannot be demoted or deactivated. Deactivation ends all sessions and keys immediately. Raising a level and reactivation require a key with `*` and no restriction; in a session, a level change requires password re-authentication.",
  http: {
    method: "PATCH",
    path: "/members/:uuid",
    answer: "The member.",
    requiresReauthentication: ({ level }) => level !== undefined,
    makesCredential: ({ stores: { metadata }, organization }: Context, change: MemberChange) =>
      isGranting(metadata.db, organization.id, change.uuid, {
        level: change.level,
        isActive: change.is_active,
      }),
  },
  cli: {
    name: "members set",
    description: "Update the level of a member, or deactivate or reactivate the user.",
    examples: ["members set ann@example.com --level owner", "members set ann@example.com --no-is-active"],
    arguments: [emailArgument],
    options: { level: levelOption, is_active: { description: "whether the user can sign in and use keys" } },
    done: summarize,
  },
  input: object({ uuid: uuid(), ...memberChange }),
  inputExample: { level: 8 },
  output: MemberBody,
  example: exampleMember,
  run: (context: Context, { uuid: id, level, is_active: isActive }) => {
    const { metadata } = context.stores;
    return memberBody(metadata.db, updateMember(metadata, getActor(context), id, { level, isActive }));
  },
});
interface MemberChange {
  uuid: string;
  level?: number;
  is_active?: boolean;
}

const removeOneMember = operation({
  id: "members.delete",
  on: "organization",
  scope,
  tag,
  summary: "Remove a member",
  description: "Admins and owners only, or your own membership. The last owner cannot be removed.",
  http: { method: "DELETE", path: "/members/:uuid" },
  cli: {
    name: "members remove",
    description: "Remove a member from the organization and its roles.",
    examples: ["members remove ann@example.com"],
    arguments: [emailArgument],
    result: {
      schema: object({ ...MemberBody.properties, removed: Type.Literal(true) }),
      build: ({ found }: { found: { email: MemberRecord } }) => ({ ...found.email, removed: true }),
    },
    done: ({ user }: MemberRecord) => `${user.email} is no longer a member.`,
  },
  input: byUuid,
  run: (context: Context, { uuid: id }) => removeMember(context.stores.metadata, getActor(context), id),
});

const listKeysOfMember = operation({
  id: "members.keys.list",
  on: "organization",
  scope: "organization_member:read",
  tag,
  summary: "List the personal API keys of a member",
  description:
    "Admins and owners only; admins cannot list the keys of owners. Not paginated, without key values.",
  http: { method: "GET", path: "/members/:uuid/personal_api_keys", answer: "The keys, newest first." },
  input: byUuid,
  output: list(KeyBody),
  example: [exampleKey],
  run: (context: Context, { uuid: id }) =>
    keysOfMember(context.stores.metadata, getActor(context), id).map((key) => keyBody(key)),
});

const revokeKeyOfMember = operation({
  id: "members.keys.delete",
  on: "organization",
  scope,
  tag,
  summary: "Revoke a personal API key of a member",
  description: "The key and the sessions created with it end immediately. Admins and owners only.",
  http: { method: "DELETE", path: "/members/:uuid/personal_api_keys/:id" },
  input: object({ uuid: uuid(), id: uuid() }),
  run: (context: Context, { uuid: member, id }) => {
    const { metadata } = context.stores;
    const actor = getActor(context);
    const key = keysOfMember(metadata, actor, member).find((each) => each.id === id);
    if (key === undefined) throw notFound();
    revokeKey(metadata, key.id, context.now, actor.by);
  },
});

const createLinkOfMember = operation({
  id: "members.link",
  on: "organization",
  scope,
  tag,
  summary: "Create a one-time link for a member",
  description:
    "For a member who forgot the password; earlier links become invalid. The holder signs in as the member: admins and owners only, for levels up to their own. The link becomes invalid when its creator loses the permission to create it.",
  http: {
    method: "POST",
    path: "/members/:uuid/link",
    status: 201,
    answer: "The link.",
    makesCredential: true,
  },
  cli: {
    name: "members link",
    description: "Create a one-time link with which a member chooses a password; earlier links stop working.",
    examples: ["members link ann@example.com"],
    settings: linkSettings,
    arguments: [emailArgument],
    done: ({ console_url: url }: Static<typeof LinkBody>) => `${linkHint}\n${url}`,
  },
  input: byUuid,
  output: LinkBody,
  example: exampleLink,
  run: (context: Context, { uuid: id }) =>
    linkBody(context, inviteMember(context.stores.metadata, getActor(context), id)),
});

function getActor({ organization, actor, now }: Context): MemberActor {
  const user = actor.kind === "user" ? actor.user : undefined;
  const keyId = actor.kind === "user" ? actor.keyId : null;
  return { organizationId: organization.id, user, by: getAuthor(actor), keyId, now };
}

async function linkBody(
  { baseUrl }: Context,
  { token, expiresAt }: Invitation,
): Promise<Static<typeof LinkBody>> {
  return { console_url: setupAddress(await baseUrl(), token), expires_at: toApiTime(expiresAt) };
}

/** In the order of the documentation. */
export const memberOperations = [
  listAllMembers,
  addNewMember,
  getOneMember,
  updateOneMember,
  removeOneMember,
  listKeysOfMember,
  revokeKeyOfMember,
  createLinkOfMember,
];
