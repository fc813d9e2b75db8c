/** The parameters of an address. */

/** Of a parameter that is repeated, the last one counts (contract: management-api 5.1). */
export class Query extends URLSearchParams {
  override get(name: string): string | null {
    return this.getAll(name).at(-1) ?? null;
  }
}
