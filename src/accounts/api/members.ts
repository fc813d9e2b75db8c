/** The people of an organisation (contract: management-api 2.6). */

import type { Static } from "@sinclair/typebox";
import { notFound } from "../../http/failure.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readUuid } from "../../http/path.ts";
import { Reply, type Route } from "../../http/route.ts";
import {
  bool,
  instant,
  intChoice,
  list,
  named,
  nullable,
  object,
  onePage,
  optional,
  PageQuery,
  pageOf,
  text,
  uuid,
} from "../../http/shapes.ts";
import { toWire } from "../../lib/wire-time.ts";
import type { Metadata } from "../metadata.ts";
import { revokeKey } from "../personal-keys.ts";
import {
  type Acting,
  addMember,
  hasPassword,
  type Invitation,
  inviteMember,
  isGranting,
  keysOfMember,
  memberOf,
  removeMember,
  updateMember,
} from "../sessions/members.ts";
import { setupAddress } from "../sessions/setup-links.ts";
import { listMembers, type Member, membershipLevels } from "../users.ts";
import { exampleKey, KeyBody, keyBody } from "./personal-keys.ts";
import { type OrganizationCall, organizationRoute } from "./routes.ts";
import { exampleUser, UserBody, userBody } from "./user-shapes.ts";

const tagName = "Organisations";
const levels = [1, 8, 15] as const;

const MemberBody = named(
  "OrganizationMember",
  object({
    id: uuid(),
    user: UserBody,
    level: intChoice(levels, { description: "1 member, 8 admin, 15 owner." }),
    joined_at: instant(),
    updated_at: instant(),
    is_active: bool({ description: "Keys and sessions of somebody who is not do nothing." }),
    has_password: bool({ description: "Whether the person has signed in to the console with a link." }),
  }),
);
const InvitationFields = {
  console_url: nullable(text({ description: "A one-time link; null for somebody who can sign in already." })),
  expires_at: nullable(instant()),
};
const NewMemberBody = named(
  "NewOrganizationMember",
  object({ ...MemberBody.properties, ...InvitationFields }),
);
const LinkBody = named("OneTimeLink", object({ console_url: text(), expires_at: instant() }));

const exampleMember = {
  id: "0193d1a2-7b1c-7c3e-9f60-7a8b9c0d1e2f",
  user: exampleUser,
  level: 15,
  joined_at: "2026-03-01T12:00:00.000000Z",
  updated_at: "2026-03-01T12:00:00.000000Z",
  is_active: true,
  has_password: true,
};
const exampleLink = {
  console_url: "…/console/setup#3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzB",
  expires_at: "2026-03-02T12:00:00.000000Z",
};
const oneAnswer = { 200: { description: "The member.", schema: MemberBody, example: exampleMember } };
const scope = "organization_member:write";

export function memberRoutes({ metadata }: { metadata: Metadata }): Route[] {
  const body = (member: Member): Static<typeof MemberBody> => ({
    id: member.id,
    user: userBody(member.user),
    level: member.level as (typeof levels)[number],
    joined_at: toWire(member.joinedAt),
    updated_at: toWire(member.updatedAt),
    is_active: member.user.isActive,
    has_password: hasPassword(metadata.db, member.user.id),
  });
  return [
    organizationRoute("GET", "/members", "organization_member:read", {
      summary: "List the members of an organization",
      tag: tagName,
      query: PageQuery,
      answers: {
        200: onePage("One page of members.", pageOf("OrganizationMemberPage", MemberBody), exampleMember),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const members = listMembers(metadata.db, call.organization.id);
        const shown = members.slice(page.offset, page.offset + page.limit).map(body);
        return pageAnswer(call.url, page, members.length, shown);
      },
    }),
    organizationRoute("POST", "/members", scope, {
      summary: "Add a member to an organization",
      description:
        "Answers with a one-time link to hand over: its holder chooses the password. Admins and owners only, for levels up to their own. The link ends when its creator may no longer create it.",
      tag: tagName,
      makesCredential: true,
      body: object({
        email: text({ max: 320 }),
        level: optional(intChoice(levels)),
        first_name: optional(text({ blank: true, max: 150 })),
        last_name: optional(text({ blank: true, max: 150 })),
      }),
      bodyExample: { email: "bob@example.com", level: 1 },
      answers: {
        201: {
          description: "The new member.",
          schema: NewMemberBody,
          example: { ...exampleMember, level: 1, has_password: false, ...exampleLink },
        },
      },
      handle: (call) => {
        const { email, level = membershipLevels.member, first_name, last_name } = call.body;
        const input = { email, level, firstName: first_name || undefined, lastName: last_name };
        const { member, invitation } = addMember(metadata, actingIn(call), input);
        const link = invitation && linkBody(call, invitation);
        return new Reply(201, { ...body(member), ...(link ?? { console_url: null, expires_at: null }) });
      },
    }),
    organizationRoute("GET", "/members/:uuid", "organization_member:read", {
      summary: "Get a member",
      description: "By the user's uuid or by the membership's id.",
      tag: tagName,
      answers: oneAnswer,
      handle: (call) => body(memberOf(metadata.db, call.organization.id, readUuid(call.params, "uuid"))),
    }),
    organizationRoute("PATCH", "/members/:uuid", scope, {
      summary: "Update the level of a member, or deactivate the member",
      description:
        "Admins and owners only; an admin has no say over owners. The last owner stays one and stays active. Somebody switched off loses all sessions, and all keys stop working, at once. A higher level, and switching somebody on, need a key with `*` and no restriction; a session is asked for the password again before a change of level.",
      tag: tagName,
      asksAgain: ({ level }) => level !== undefined,
      makesCredential: ({ organization, params, body: { level, is_active: isActive } }) =>
        isGranting(metadata.db, organization.id, readUuid(params, "uuid"), { level, isActive }),
      body: object({ level: optional(intChoice(levels)), is_active: optional(bool()) }),
      isPartial: true,
      bodyExample: { level: 8 },
      answers: oneAnswer,
      handle: (call) => {
        const { level, is_active: isActive } = call.body;
        return body(
          updateMember(metadata, actingIn(call), readUuid(call.params, "uuid"), { level, isActive }),
        );
      },
    }),
    organizationRoute("DELETE", "/members/:uuid", scope, {
      summary: "Remove a member",
      description: "Admins and owners only, or oneself; never the last owner.",
      tag: tagName,
      answers: { 204: { description: "Gone." } },
      handle: (call) => {
        removeMember(metadata, actingIn(call), readUuid(call.params, "uuid"));
        return new Reply(204);
      },
    }),
    organizationRoute("GET", "/members/:uuid/personal_api_keys", "organization_member:read", {
      summary: "List the personal API keys of a member",
      description:
        "Admins and owners only; an admin has no say over owners. Not in pages; never their values.",
      tag: tagName,
      answers: {
        200: { description: "The keys, newest first.", schema: list(KeyBody), example: [exampleKey] },
      },
      handle: (call) =>
        keysOfMember(metadata, actingIn(call), readUuid(call.params, "uuid")).map((key) => keyBody(key)),
    }),
    organizationRoute("DELETE", "/members/:uuid/personal_api_keys/:id", scope, {
      summary: "Revoke a personal API key of a member",
      description: "It stops working at once, and so do the sessions made from it. Admins and owners only.",
      tag: tagName,
      answers: { 204: { description: "Gone." } },
      handle: (call) => {
        const keys = keysOfMember(metadata, actingIn(call), readUuid(call.params, "uuid"));
        const key = keys.find(({ id }) => id === readUuid(call.params, "id"));
        if (key === undefined) throw notFound();
        revokeKey(metadata, key.id, call.now, call.user.id);
        return new Reply(204);
      },
    }),
    organizationRoute("POST", "/members/:uuid/link", scope, {
      summary: "Create a one-time link for a member",
      description:
        "For a member who forgot the password; earlier links end. Its holder signs in as the member: admins and owners only, for levels up to their own. The link ends when its creator may no longer create it.",
      tag: tagName,
      makesCredential: true,
      answers: { 201: { description: "The link.", schema: LinkBody, example: exampleLink } },
      handle: (call) =>
        new Reply(201, linkBody(call, inviteMember(metadata, actingIn(call), readUuid(call.params, "uuid")))),
    }),
  ];
}

function actingIn({ organization, user: by, key, session, now }: OrganizationCall<unknown>): Acting {
  return { organizationId: organization.id, by, keyId: key?.id ?? session?.keyId ?? null, now };
}

function linkBody(
  { baseUrl }: { baseUrl: string },
  { token, expiresAt }: Invitation,
): Static<typeof LinkBody> {
  return { console_url: setupAddress(baseUrl, token), expires_at: toWire(expiresAt) };
}
