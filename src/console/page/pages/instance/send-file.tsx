/** Uploads a file to import: its first rows, which columns are the fields of events, and a check before it is loaded. */

import { useEffect, useState } from "preact/hooks";
import { FigureFrame } from "../../components/chart-frame.tsx";
import { Checkbox, FileField, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { toast } from "../../components/toast.tsx";
import { queryString, request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { formatValue } from "../../lib/format.ts";
import { type Preview, previewBytes, readPreview } from "../../lib/preview.ts";
import { inProject, project, projects } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.instance.imports;
/** Below the server's default body limit. */
const partBytes = 8_000_000;
const cellMax = 60;
const targets = ["event", "distinct_id", "timestamp"] as const;
type Mapping = Partial<Record<(typeof targets)[number], string>>;

/** Names that a rule cannot contain: they would be read as constants or alternatives. */
const isMappable = (name: string) => name.trim() !== "" && !/[|'"]/.test(name);

export function SendFile({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [file, setFile] = useState<File>();
  const [preview, setPreview] = useState<Preview>();
  const [mapping, setMapping] = useState<Mapping>({});
  const [sent, setSent] = useState<number>();
  useEffect(() => {
    setPreview(undefined);
    setMapping({});
    if (file === undefined) return;
    let isWanted = true;
    void file
      .slice(0, previewBytes)
      .text()
      .then((text) => {
        if (isWanted) setPreview(readPreview(text, file.size > previewBytes));
      });
    return () => {
      isWanted = false;
    };
  }, [file]);
  const form = useForm(
    { isDry: true, target: String(project.value?.id ?? "") },
    async ({ isDry, target }) => {
      if (file === undefined) return;
      setSent(0);
      try {
        const path = target === "" ? inProject("imports/") : `/api/projects/${target}/imports/`;
        const query = queryString({ name: file.name, dry_run: isDry, start: false });
        const rules = Object.entries(mapping).map(
          ([field, column]) => `&map=${encodeURIComponent(`${field}=${column}`)}`,
        );
        const { id } = await request<{ id: string }>(`${path}${query}${rules.join("")}`, { method: "POST" });
        for (let offset = 0; offset < file.size; offset += partBytes) {
          await request(`${path}${id}/parts/?offset=${offset}`, {
            method: "POST",
            file: file.slice(offset, offset + partBytes),
          });
          setSent(Math.min(file.size, offset + partBytes));
        }
        await request(`${path}${id}/start/`, { method: "POST", body: {} });
        toast(w.started(file.name));
        onDone();
      } finally {
        setSent(undefined);
      }
    },
  );
  return (
    <FormDialog
      title={w.add}
      form={form}
      action={w.send}
      size="large"
      isDisabled={file === undefined || form.isBusy}
      onClose={onClose}
    >
      <p class="help">{w.help}</p>
      <FileField label={w.file} onChoose={setFile} />
      <Select
        label={messages.frame.project}
        choices={projects.value.map(({ id, name }) => [String(id), name] as const)}
        {...form.choice("target")}
      />
      {preview && (
        <>
          <p class="label">{w.preview(preview.rows.length)}</p>
          <div class="import-preview">
            <FigureFrame label={w.previewTable} shape="wide" heads={preview.columns}>
              {preview.rows.map((row, position) => (
                <tr key={position}>
                  {preview.columns.map((name) => (
                    <td key={name} class="text">
                      {row[name] === undefined ? "" : formatValue(row[name]).slice(0, cellMax)}
                    </td>
                  ))}
                </tr>
              ))}
            </FigureFrame>
          </div>
          <fieldset class="row bottom import-mapping">
            <legend class="label">{w.mapping}</legend>
            {targets.map((field) => (
              <Select
                key={field}
                label={field}
                value={mapping[field] ?? ""}
                choices={[
                  ["", w.automatic],
                  ...preview.columns.filter(isMappable).map((name) => [name, name] as const),
                ]}
                onChange={(column) => {
                  const { [field]: _, ...others } = mapping;
                  setMapping(column === "" ? others : { ...others, [field]: column });
                }}
              />
            ))}
          </fieldset>
        </>
      )}
      {file && !preview && <p class="help">{w.noPreview}</p>}
      <Checkbox label={w.dryRunHelp} {...form.toggle("isDry")} />
      {sent !== undefined && <progress aria-label={w.send} max={file?.size ?? 1} value={sent} />}
    </FormDialog>
  );
}
