/** Blast radius of a flag: counts before a change (contract: management-api 5.17; decision 18). */

import { bool, int, named, nullable, object, optional, record, string } from "../../http/schemas.ts";
import type { BlastRadius, BlastRadiusQuery } from "../rules/blast-radius.ts";

export const BlastRadiusResponse = named(
  "BlastRadius",
  object({
    users_affected: int(),
    total_users: int(),
    affected: int({ description: "Same as `users_affected`." }),
    total: int({ description: "Same as `total_users`." }),
  }),
);

/** Counts the persons or groups that match a flag's conditions. */
export interface BlastRadiusCounter {
  /**
   * Counts without changing anything.
   *
   * @throws {InvalidFieldError} the conditions cannot be evaluated.
   * Source: contract, management-api 5.17; decision 18.
   */
  blastRadius(projectId: number, question: BlastRadiusQuery): Promise<BlastRadius>;
}

export const BlastRadiusInput = object({
  filters: optional(nullable(record({ description: "Same as in a flag." }))),
  rollout_percentage: optional(
    nullable(int({ minimum: 0, maximum: 100 }), { description: "Same as in a flag." }),
  ),
  key: optional(string({ blank: true, max: 400, description: "Flag key, which is part of the hash." })),
  apply_rollout: optional(bool({ default: false, description: "Apply rollout percentages." })),
  condition: optional(
    nullable(record({ description: "`{properties: [...]}`; empty: everyone. Excludes `filters`." })),
  ),
  group_type_index: optional(nullable(int({ minimum: 0 }), { description: "Count groups of this type." })),
});
export const exampleBlastRadiusInput = {
  filters: {
    groups: [
      {
        properties: [{ key: "email", type: "person", operator: "icontains", value: "@example.com" }],
        rollout_percentage: 40,
      },
    ],
  },
  apply_rollout: true,
};
