/**
 * Experiments, early access features and surveys that use a flag. They are part of the flag's fields, and some prevent
 * its deletion.
 *
 * Source: contract, experiments 1.3.
 */

import { and, eq, inArray } from "drizzle-orm";
import type { MetadataTx, Reading } from "../../accounts/db.ts";
import { experiment, flagLink } from "../../accounts/schema.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { inChunks } from "./flag.ts";

export type FlagLink = typeof flagLink.$inferSelect;

type LinkedFields = Pick<Flag, "experimentSet" | "features" | "surveys">;

/** Writes what an object shows in its flag; replaces what it showed before. */
export function setFlagLink(t: MetadataTx, link: FlagLink): void {
  removeFlagLinks(t, link.kind, link.objectId, link.flagId);
  t.insert(flagLink).values(link).run();
}

/** @param flagId undefined: of all flags */
export function removeFlagLinks(
  t: MetadataTx,
  kind: FlagLink["kind"],
  objectId: string,
  flagId?: number,
): void {
  t.delete(flagLink)
    .where(
      and(
        eq(flagLink.kind, kind),
        eq(flagLink.objectId, objectId),
        flagId === undefined ? undefined : eq(flagLink.flagId, flagId),
      ),
    )
    .run();
}

export function getFlagLinks(db: Reading, flagId: number): FlagLink[] {
  return db.select().from(flagLink).where(eq(flagLink.flagId, flagId)).all();
}

/** Links of several flags, by flag. */
export function linksByFlag(db: Reading, flagIds: readonly number[]): Map<number, FlagLink[]> {
  const found = new Map<number, FlagLink[]>();
  const rows = inChunks(flagIds, (chunk) =>
    db.select().from(flagLink).where(inArray(flagLink.flagId, chunk)).all(),
  );
  for (const link of rows) found.set(link.flagId, [...(found.get(link.flagId) ?? []), link]);
  return found;
}

/** The fields as clients see them: what they wrote, and the objects that use the flag. */
export function withLinks<Of extends LinkedFields>(fields: Of, links: readonly FlagLink[]): Of {
  if (links.length === 0) return fields;
  const linked = (kind: FlagLink["kind"]): JsonObject =>
    Object.fromEntries(
      links.filter((link) => link.kind === kind).map(({ objectId, shown }) => [objectId, shown]),
    );
  const experiments = links
    .filter(({ kind }) => kind === "experiment")
    .map(({ objectId }) => Number(objectId));
  return {
    ...fields,
    experimentSet: [...new Set([...fields.experimentSet, ...experiments])],
    features: { ...fields.features, ...linked("feature") },
    surveys: { ...fields.surveys, ...linked("survey") },
  };
}

/** A write without what the server added: a client may send what it read. @param before as stored */
export function withoutLinks(
  fields: Partial<FlagFields>,
  before: LinkedFields,
  links: readonly FlagLink[],
): Partial<FlagFields> {
  if (links.length === 0) return fields;
  const { experimentSet, features, surveys } = fields;
  const isLinked = (kind: FlagLink["kind"], id: string) =>
    links.some((link) => link.kind === kind && link.objectId === id);
  const own = (kind: FlagLink["kind"], sent: JsonObject, stored: JsonObject) =>
    Object.fromEntries(
      Object.entries(sent).filter(([id]) => !isLinked(kind, id) || Object.hasOwn(stored, id)),
    );
  return {
    ...fields,
    ...(experimentSet && {
      experimentSet: experimentSet.filter(
        (id) => !isLinked("experiment", String(id)) || before.experimentSet.includes(id),
      ),
    }),
    ...(features && { features: own("feature", features, before.features) }),
    ...(surveys && { surveys: own("survey", surveys, before.surveys) }),
  };
}

/**
 * Before a flag is deleted: drafts of experiments are deleted along with it.
 *
 * @throws {InvalidFieldError} names what still uses the flag.
 */
export function releaseFlag(t: MetadataTx, flagId: number): void {
  const links = getFlagLinks(t, flagId);
  const held = links.filter(({ holds }) => holds);
  if (held.length > 0) {
    const kindNames = { experiment: "experiment", feature: "early access feature", survey: "survey" };
    const names = held.map(({ kind, name }) => `${kindNames[kind]} "${name}"`).join(", ");
    throw new InvalidFieldError(
      "deleted",
      "invalid_input",
      `This feature flag cannot be deleted because it is in use: ${names}. End or delete it first.`,
    );
  }
  for (const { kind, objectId } of links) {
    if (kind !== "experiment") continue;
    const draft = t
      .select()
      .from(experiment)
      .where(eq(experiment.id, Number(objectId)))
      .get();
    if (draft?.startDate !== null) continue;
    t.update(experiment).set({ deleted: true }).where(eq(experiment.id, draft.id)).run();
    removeFlagLinks(t, "experiment", objectId);
  }
}
