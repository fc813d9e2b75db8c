/** Dashboards in requests and responses. */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-schemas.ts";
import type { UserFinder } from "../../accounts/users.ts";
import {
  bool,
  dateTime,
  int,
  intEnum,
  list,
  longString,
  named,
  nullable,
  object,
  optional,
  record,
  string,
  tag,
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import type { Dashboard, TileChange } from "../store.ts";
import { exampleInsight, InsightBody } from "./insight-schemas.ts";

const DashboardFields = {
  id: int(),
  name: string({ blank: true }),
  description: string({ blank: true }),
  pinned: bool(),
  created_at: dateTime(),
  created_by: nullable(UserBody),
  last_accessed_at: nullable(dateTime()),
  is_shared: bool(),
  deleted: bool(),
  creation_mode: string(),
  tags: list(string()),
  restriction_level: intEnum([21, 37]),
  effective_restriction_level: intEnum([21, 37]),
  effective_privilege_level: intEnum([21, 37]),
  user_access_level: string(),
  access_control_version: string(),
};

export const DashboardBody = named("Dashboard", object(DashboardFields));

export const FullDashboardBody = named(
  "DashboardWithTiles",
  object({
    ...DashboardFields,
    filters: record(),
    variables: record(),
    tiles: list(
      object({
        id: int(),
        layouts: record(),
        color: nullable(string({ blank: true })),
        order: int(),
        show_description: nullable(bool()),
        insight: nullable(InsightBody),
        text: nullable(object({ id: int(), body: string({ blank: true, description: "Markdown." }) })),
      }),
    ),
  }),
);

export const DashboardInput = object({
  name: optional(string({ blank: true, max: 400 })),
  description: optional(longString()),
  pinned: optional(bool()),
  deleted: optional(bool()),
  tags: optional(list(tag())),
  filters: optional(
    record({ description: "`date_from` and `date_to` override the date range of every insight." }),
  ),
});

const textLengthMax = 4_000;
export const DashboardChange = object({
  ...DashboardInput.properties,
  tiles: optional(
    list(
      object({
        id: optional(int({ description: "Omit it to add a tile with `text`." })),
        layouts: optional(record()),
        color: optional(
          nullable(string({ blank: true, max: 50, description: "Empty or null: default color." })),
        ),
        show_description: optional(nullable(bool())),
        text: optional(
          nullable(object({ body: string({ blank: true, max: textLengthMax, description: "Markdown." }) })),
        ),
        deleted: optional(nullable(bool({ description: "Removes the tile; its insight is kept." }))),
      }),
      {
        description: "Tiles in their new order; omitted tiles follow in their current order.",
      },
    ),
  ),
});

export const exampleDashboard = {
  id: 31,
  name: "Orders",
  description: "",
  pinned: false,
  created_at: "2026-03-02T08:15:30.120000Z",
  created_by: exampleUser,
  last_accessed_at: null,
  is_shared: false,
  deleted: false,
  creation_mode: "default",
  tags: ["payments"],
  restriction_level: 21,
  effective_restriction_level: 21,
  effective_privilege_level: 37,
  user_access_level: "editor",
  access_control_version: "v2",
};
export const exampleFullDashboard = {
  ...exampleDashboard,
  filters: { date_from: "-30d" },
  variables: {},
  tiles: [
    {
      id: 7,
      layouts: {},
      color: "blue",
      order: 0,
      show_description: null,
      insight: exampleInsight,
      text: null,
    },
  ],
};
/** A null or absent member means unchanged, except where null clears. */
export function tileChange(sent: NonNullable<Static<typeof DashboardChange>["tiles"]>[number]): TileChange {
  const { id, layouts, color, show_description: showDescription, text: sentText, deleted } = sent;
  return {
    ...(id === undefined ? {} : { id }),
    ...(layouts === undefined ? {} : { layouts }),
    ...(color === undefined ? {} : { color }),
    ...(showDescription === undefined ? {} : { showDescription }),
    ...(sentText ? { text: sentText.body } : {}),
    ...(deleted ? { deleted } : {}),
  };
}

/** A dashboard without tiles. @param shared ids of dashboards with a share link */
export function dashboardBody(
  dashboard: Dashboard,
  users: UserFinder,
  shared: ReadonlySet<number>,
): Static<typeof DashboardBody> {
  const creator = users(dashboard.createdById);
  return {
    id: dashboard.id,
    name: dashboard.name,
    description: dashboard.description,
    pinned: dashboard.pinned,
    created_at: toApiTime(dashboard.createdAt),
    created_by: creator ? userBody(creator) : null,
    last_accessed_at: toApiTimeOrNull(dashboard.lastAccessedAt),
    is_shared: shared.has(dashboard.id),
    deleted: dashboard.deleted,
    creation_mode: dashboard.creationMode,
    tags: dashboard.tags,
    restriction_level: dashboard.restrictionLevel as 21 | 37,
    effective_restriction_level: dashboard.restrictionLevel as 21 | 37,
    effective_privilege_level: 37,
    user_access_level: "editor",
    access_control_version: "v2",
  };
}
