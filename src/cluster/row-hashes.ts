/** Sums of hashes by which rows of a file and of PostgreSQL are compared; their order does not matter. */

/** Hexadecimal digits of a hash: the sum of any number of rows is exact. */
const digits = 15;

export interface RowSums {
  rows: number;
  sum: bigint;
}

export const noRows: RowSums = { rows: 0, sum: 0n };

export function rowHash(text: string): bigint {
  const hash = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  return BigInt(`0x${hash.slice(0, digits)}`);
}

export const addRowHashes = ({ rows, sum }: RowSums, hash: bigint): RowSums => ({
  rows: rows + 1,
  sum: sum + hash,
});

/** The sum of `rowHash` over rows, as text. @param text an SQL expression */
export const rowHashSql = (text: string) =>
  `coalesce(sum(('x' || left(encode(sha256(convert_to(${text}, 'UTF8')), 'hex'), ${digits}))::bit(60)::bigint::numeric), 0)::text`;
