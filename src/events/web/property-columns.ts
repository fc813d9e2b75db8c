/** Columns of the event store for the properties that web analytics reads. */

import { occurringProperties } from "../../persons/event-definitions.ts";
import type { PersonsDb } from "../../persons/open.ts";
import type { EventSql } from "../sql-dialect.ts";
import { webPropertyNames } from "./visit-fields.ts";

const viewEvents = ["$pageview", "$screen"];

/** The properties to materialize: those that occur, once a project has page views. */
export const webProperties = (people: PersonsDb): string[] =>
  occurringProperties(people, viewEvents, webPropertyNames);

/**
 * A store for web analytics queries, which read the JSON of an event at most once for all properties without a column.
 * @param absent properties that no event of the project has
 */
export function forWebQueries(store: EventSql, absent: readonly string[]): EventSql {
  const { eventProperties: location, dialect } = store;
  if (typeof location === "string") return store;
  const present = webPropertyNames.filter((name) => !absent.includes(name));
  const columns = new Map(present.map((name) => [name, location.findColumn(name)]));
  const parsed = present.filter((name) => columns.get(name) === undefined);
  const texts = dialect.memberTexts(location.json, parsed);
  return {
    ...store,
    eventProperties: {
      json: location.json,
      findColumn(name) {
        if (absent.includes(name)) return dialect.nullText;
        return columns.get(name) ?? texts[parsed.indexOf(name)] ?? location.findColumn(name);
      },
    },
  };
}
