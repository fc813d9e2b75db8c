/** The first rejected records of an import with their reasons. */

import { useState } from "preact/hooks";
import { FigureFrame } from "../../components/chart-frame.tsx";
import { Content } from "../../components/states.tsx";
import { send } from "../../lib/api.ts";
import { formatValue, number } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.instance.imports;
const shownMax = 20;
const recordMax = 200;

interface Reject {
  line: number;
  reason: string;
  record: unknown;
}

export function ImportRejects({ name, path }: { name: string; path: string }) {
  const [isOpen, setOpen] = useState(false);
  const rejects = useResource<Reject[]>(isOpen ? `rejects ${path}` : null, async (signal) => {
    const answer = await send(path, { accept: "application/x-ndjson", signal });
    const lines = (await answer.text()).split("\n").filter((line) => line !== "");
    return lines.slice(0, shownMax).map((line) => JSON.parse(line) as Reject);
  });
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{w.rejectedRows}</summary>
      {isOpen && (
        <Content resource={rejects} rows={3}>
          {(shown) => (
            <div class="import-preview">
              <FigureFrame
                label={`${w.rejectedRows}: ${name}`}
                shape="wide"
                heads={[w.line, w.reason, w.record]}
              >
                {shown.map(({ line, reason, record }) => (
                  <tr key={line}>
                    <td>{number(line)}</td>
                    <td class="text">{reason}</td>
                    <td class="text">{formatValue(record).slice(0, recordMax)}</td>
                  </tr>
                ))}
              </FigureFrame>
            </div>
          )}
        </Content>
      )}
    </details>
  );
}
