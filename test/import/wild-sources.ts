/** The vendors' records that `fuzz.test.ts` mutates. */

import type { RecordFormat } from "../../src/import/map/formats.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";

export interface Source {
  format: RecordFormat;
  /** Paths of the members with the user and the device. */
  user?: string;
  device?: string;
  name: string;
  time: string;
  /** The ID of the record. */
  id?: string;
  /** A record becomes any number of events. */
  hasMany?: true;
  /** Records contain states of groups, each of which is sent with the first event that has it. */
  hasStates?: true;
  /** Records are lists of objects, which tables have in columns of their own. */
  isTree?: true;
  /** Rows that describe persons and groups: of several rows of one, the last may count. */
  isSnapshot?: true;
  /** Its rows name the distinct IDs of one person. */
  hasPersons?: true;
  /** Records for mutation, in addition to those of the other tests. */
  records?: readonly JsonObject[];
}

export const at = "2024-05-01 10:00:00";
export const wildSources: Readonly<Record<string, Source>> = {
  posthog: { format: "posthog", user: "distinct_id", name: "event", time: "timestamp", id: "uuid" },
  events: {
    format: "events",
    user: "distinct_id",
    name: "event",
    time: "timestamp",
    id: "$insert_id",
    records: [
      { event: "e", distinct_id: "u", timestamp: at, properties: { a: 1 }, plan: "x", $set: { b: 2 } },
    ],
  },
  amplitude: {
    format: "amplitude",
    user: "user_id",
    device: "device_id",
    name: "event_type",
    time: "event_time",
    id: "$insert_id",
    hasStates: true,
  },
  mixpanel: {
    format: "mixpanel",
    user: "properties.$user_id",
    device: "properties.$device_id",
    name: "event",
    time: "properties.time",
    id: "properties.$insert_id",
  },
  segment: {
    format: "segment",
    user: "userId",
    device: "anonymousId",
    name: "event",
    time: "timestamp",
    id: "messageId",
  },
  rudderstack: {
    format: "rudderstack",
    user: "user_id",
    device: "anonymous_id",
    name: "event",
    time: "timestamp",
    id: "id",
  },
  ga4: {
    format: "ga4",
    user: "user_id",
    device: "user_pseudo_id",
    name: "event_name",
    time: "event_timestamp",
  },
  umami: {
    format: "umami",
    user: "distinct_id",
    device: "session_id",
    name: "event_name",
    time: "created_at",
    id: "event_id",
  },
  plausible: { format: "plausible", user: "user_id", name: "name", time: "timestamp" },
  matomo: {
    format: "matomo",
    user: "userId",
    device: "visitorId",
    name: "actionDetails.0.type",
    time: "actionDetails.0.timestamp",
    id: "idVisit",
    hasMany: true,
    isTree: true,
  },
  snowplow: {
    format: "snowplow",
    user: "user_id",
    device: "domain_userid",
    name: "event",
    time: "collector_tstamp",
    id: "event_id",
  },
  heap: {
    format: "heap",
    user: "identity",
    device: "user_id",
    name: "event_table_name",
    time: "time",
    id: "event_id",
  },
  "mixpanel-people": {
    format: "mixpanel-people",
    user: "$distinct_id",
    name: "$properties.$name",
    time: "$properties.$last_seen",
    isSnapshot: true,
    records: [
      { $distinct_id: "u", $properties: { $last_seen: at, $email: "a@b.c", plan: "x", $city: "Bonn" } },
    ],
  },
  "mixpanel-groups": {
    format: "mixpanel-groups",
    user: "$group_id",
    name: "$group_key",
    time: "$properties.$last_seen",
    isSnapshot: true,
    records: [{ $group_key: "company", $group_id: "acme", $properties: { $last_seen: at, size: 3 } }],
  },
  "ga4-users": {
    format: "ga4-users",
    user: "user_id",
    device: "pseudo_user_id",
    name: "user_properties",
    time: "user_info.last_active_timestamp_micros",
    isSnapshot: true,
    records: [
      {
        user_id: "u",
        pseudo_user_id: "d",
        audiences: [{ id: 1, name: "a" }],
        last_updated_date: "20240501",
        user_properties: [{ key: "slot", value: { user_property_name: "plan", string_value: "pro" } }],
        user_info: { last_active_timestamp_micros: "1714557600000000" },
      },
    ],
  },
  persons: {
    format: "persons",
    user: "distinct_id",
    name: "person_id",
    time: "created_at",
    isSnapshot: true,
    hasPersons: true,
    records: [
      {
        distinct_id: "u",
        person_id: "p",
        properties: { a: 1 },
        created_at: at,
        person_version: 1,
        is_deleted: 0,
      },
      { distinct_ids: ["u", "d"], id: "p", properties: '{"a":1}', created_at: at },
    ],
  },
  groups: {
    format: "groups",
    user: "group_key",
    name: "group_type",
    time: "created_at",
    isSnapshot: true,
    records: [
      { group_type: "company", group_key: "acme", group_properties: { a: 1 }, created_at: at, version: 2 },
    ],
  },
};
