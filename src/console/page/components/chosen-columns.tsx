/** Columns of a table that users choose from properties; the choice is in the address. */

import { formatValue } from "../lib/format.ts";
import { useAddress } from "../lib/router.ts";
import { messages } from "../messages/index.ts";
import type { Column } from "./table.tsx";
import { TokenField } from "./tokens.tsx";

const w = messages.frame;

/** A table's columns with the chosen properties in place of the column `properties`. */
export function useChosenColumns<Row extends { properties: Record<string, unknown> }>(
  columns: readonly Column<Row>[],
): { columns: readonly Column<Row>[]; chosen: readonly string[] } {
  const { query } = useAddress();
  const chosen = (query.columns ?? "").split(",").filter((name) => name !== "");
  if (chosen.length === 0) return { columns, chosen };
  const ofProperties = chosen.map(
    (name): Column<Row> => ({
      id: `p-${name}`,
      title: name,
      width: "minmax(0, 1fr)",
      isWideOnly: true,
      // Events of the stream may lack their properties.
      cell: ({ properties = {} }) => (name in properties ? formatValue(properties[name]) : "–"),
    }),
  );
  return {
    columns: columns.flatMap((column) => (column.id === "properties" ? ofProperties : [column])),
    chosen,
  };
}

/** @param suggestions names of properties */
export function ColumnChooser({
  chosen,
  suggestions,
}: {
  chosen: readonly string[];
  suggestions: readonly string[];
}) {
  const { set } = useAddress();
  return (
    <TokenField
      label={w.chooseColumns}
      addLabel={w.chooseColumns}
      values={chosen}
      suggestions={suggestions}
      onChange={(columns) => set({ columns: columns.join(",") || undefined })}
    />
  );
}
