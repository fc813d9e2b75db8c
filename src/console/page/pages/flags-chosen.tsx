/** What can be done with several flags at once. It asks first, naming them. */

import { useState } from "preact/hooks";
import { wordsOf } from "../lib/api.ts";
import { changeFlag, type Flag, whoGetsIt } from "../model/flags.ts";
import { Button } from "../parts/basics.tsx";
import { Question } from "../parts/confirm.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Field } from "../parts/fields.tsx";
import { complain, tell } from "../parts/toast.tsx";
import { words } from "../words/index.ts";

const w = words.flags;
const namedMax = 8;

interface Act {
  label: string;
  change: (flag: Flag) => Record<string, unknown>;
}

export function ChosenBar({
  chosen,
  onClear,
  onDone,
}: {
  chosen: ReadonlyMap<number, Flag>;
  onClear: () => void;
  onDone: () => void;
}) {
  const [act, setAct] = useState<Act>();
  const [isTagging, setTagging] = useState(false);
  const [tag, setTag] = useState("");
  const flags = [...chosen.values()];
  const keys = flags.map(({ key, filters }) => `${key} (${whoGetsIt(filters)})`);
  const refusal = flags.some(({ can_edit: canEdit }) => !canEdit) && w.notAllowed;

  const run = async ({ change }: Act) => {
    let done = 0;
    for (const flag of flags) {
      try {
        await changeFlag(flag.id, change(flag));
        done++;
      } catch (error) {
        complain(`${flag.key}: ${wordsOf(error)}`);
      }
    }
    tell(w.manyDone(done));
    onDone();
  };
  return (
    <div class="bar accent chooser">
      <span role="status">{w.chosen(chosen.size)}</span>
      <Button
        refusal={refusal}
        onClick={() => setAct({ label: w.switchOn, change: () => ({ active: true }) })}
      >
        {w.switchOn}
      </Button>
      <Button
        refusal={refusal}
        onClick={() => setAct({ label: w.switchOff, change: () => ({ active: false }) })}
      >
        {w.switchOff}
      </Button>
      <Button refusal={refusal} onClick={() => setTagging(true)}>
        {w.addTag}
      </Button>
      <Button
        kind="danger"
        refusal={refusal}
        onClick={() => setAct({ label: w.delete, change: () => ({ deleted: true }) })}
      >
        {w.delete}
      </Button>
      <Button kind="quiet" icon="close" label={w.chooseNone} onClick={onClear} />
      {act && (
        <Question
          title={w.areYouSure(flags.length)}
          text={w.manyText(keys.slice(0, namedMax), Math.max(0, keys.length - namedMax))}
          action={act.label}
          onYes={() => void run(act)}
          onClose={() => setAct(undefined)}
        />
      )}
      {isTagging && (
        <Dialog
          title={w.addTag}
          onClose={() => setTagging(false)}
          onSubmit={() => {
            setTagging(false);
            const added = tag.trim();
            if (added === "") return;
            void run({
              label: w.addTag,
              // Tags are stored as a whole: those that others have given since are not taken away.
              change: (flag) => ({
                tags: [...new Set([...flag.tags, added])],
                version: flag.version,
                original_flag: flag,
              }),
            });
          }}
          actions={
            <Button kind="main" type="submit">
              {w.addTag}
            </Button>
          }
        >
          <Field label={w.tagName} value={tag} onInput={setTag} autofocus />
        </Dialog>
      )}
    </div>
  );
}
