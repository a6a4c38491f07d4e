-- Claims ticks: checks the lease, settles dead runs or has them tried again, settles what has passed, moves the cursor, mints the fence and
-- writes the run's start, all in one step.
-- KEYS: 1 lease, 2 state, 3 fence, 4 beats, 5 control, then for each claim: job, ran, passed
-- ARGV: 1 holder, 2 term, or 0 for whoever comes first and needs no lease, 3 highest fence known, 4 silence ms, 5 connected ms, 6 runs and other records kept and for how many ms, 7 lowest number of a claim
--       whose answer may not be known yet, and the lowest of one by this engine, 8 number of claims, 9 ms that a replaced run may take to end, 10 version and 11 time zones of
--       who writes a schedule, 12 earlier schedules kept;
--       then for each claim: number, tick ms, cursor ms, want, overlap, n, n fences, m, m times (reason, first, last, count),
--       what a run has of further tries: retries, first and longest pause in ms, or ''; of a retry the cursor is the fence;
--       the schedule it was planned by or '', the schedule to adopt or '',
--       the request that it meets or '', with '+' behind it when its span has more ticks
-- Gives: 'yours' and for each claim a verdict and a value; or 'not_yours'
local call, format, concat, match = redis.call, string.format, table.concat, string.match
local held = redis.pcall('GET', KEYS[1])
local state = call('HMGET', KEYS[2], 'term', 'controlled')
local holder, term = ARGV[1], ARGV[2]
local unled = term == '0'
if not unled and (held ~= holder or state[1] ~= term) then
  return { 'not_yours' }
end
local silence, connected = tonumber(ARGV[4]), tonumber(ARGV[5])
local runs_kept, others_kept, kept_for = match(ARGV[6], '^(%d+) (%d+) (%d+)$')
local most = { ran = tonumber(runs_kept), passed = tonumber(others_kept) }
local claiming, first_own = match(ARGV[7], '^(%d+) (%d+)$')
claiming, first_own = tonumber(claiming), tonumber(first_own)
local patience = tonumber(ARGV[9])
local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
local now_text = format('%.0f', now)
local fence = math.max(tonumber(call('GET', KEYS[3])) or 0, micros - 1, tonumber(ARGV[3]))
if not (fence < 9007199254740992 - 100000) then
  -- From here on numbers are no longer told apart.
  error({ err = 'ERR the counter of terms and fences is corrupt: delete ' .. KEYS[3] .. ' and ' .. KEYS[2] })
end
-- Whether a run was begun by the asker, in the present term; without terms, by its process and not by an engine of it that is gone.
local function is_own(run)
  return run.term == term and (not unled or (run.holder == holder and tonumber(run.number) >= first_own))
end

-- For how long the asker would have heard of a run. One without a leader is trusted by its runner from before a sign of life was sent, for
-- less than `silence`: once the store has heard nothing for so long that trust is over, whoever was cut off from what. So nobody who needs
-- no leader either need have been connected to tell that it is dead. A leader's run may go on for longer.
local function heard_for(run)
  return unled and run.term == '0' and silence or connected
end

-- The runs begun here, by fence. Their first beats are written together: each call out of the script costs.
local begun = {}
local minted = false

local function record(job, key, part, line)
  local field = 'kept:' .. part
  local said = keep_record(key, line, most[part], tonumber(kept_for), now, call('HGET', job, field))
  if said then
    call('HSET', job, field, said)
  end
end

local function count(job, origin, outcome, by)
  count_up(job, (origin == 'schedule' and 'n:' or 'x:') .. outcome, by)
end

-- A run whose end its runner tells no more, or too late.
local function close(job, ran, run, outcome, error)
  ask_anew(KEYS[4], 'HDEL', KEYS[4], run.fence, 'x' .. run.fence)
  begun[run.fence] = nil
  record(job, ran, 'ran', concat({ run.tick, run.tick, '1', outcome, run.origin, run.fence, run.term, run.holder, now_text, run.claimed, error, run.tries }, '|'))
  count(job, run.origin, outcome, 1)
end

-- A tick of the schedule that did not run.
local function pass(job, passed, first, last, number, outcome)
  record(job, passed, 'passed', concat({ first, last, number, outcome, 'schedule', '0', term, holder, now_text, now_text, '', '0' }, '|'))
  count(job, 'schedule', outcome, number)
end

-- A blackout that goes on is one record, however many of its ticks are settled one by one: whether it was prolonged.
local function prolong(job, passed, last, number, cursor)
  local newest = ask_anew(passed, 'LINDEX', passed, 0)
  local first, upto, many, rest, tail =
    match(newest or '', '^(%-?%d+)|(%-?%d+)|(%d+)|(blackout|schedule|0|[^|]*|[^|]*)|%-?%d+|%-?%d+(|.*)$')
  if not first or tonumber(upto) ~= cursor or rest ~= concat({ 'blackout|schedule|0', term, holder }, '|') then
    return false
  end
  call('LSET', passed, 0, concat({ first, last, format('%.0f', many + number), rest, now_text, now_text }, '|') .. tail)
  count(job, 'schedule', 'blackout', number)
  return true
end

-- Asks runs to end; those that were asked long ago, and have not, are closed. Gives those that are left.
local function replace(job, ran, open)
  local left = {}
  for _, run in ipairs(open) do
    local asked = read_instant(ask_anew(KEYS[4], 'HGET', KEYS[4], 'x' .. run.fence))
    if asked and asked > now then
      -- The server's clock was set back.
      asked = nil
    end
    if asked and now - asked >= patience then
      close(job, ran, run, 'ran.cancelled', 'replaced by a later tick, and not ended in time')
    else
      if not asked then
        ask_anew(KEYS[4], 'HSET', KEYS[4], 'x' .. run.fence, now_text)
      end
      left[#left + 1] = run
    end
  end
  return left
end

-- A run that is tried again pauses: how its try ended is kept with it.
local function pause(run, outcome, at)
  ask_anew(KEYS[4], 'HDEL', KEYS[4], run.fence, 'x' .. run.fence)
  begun[run.fence] = nil
  run.again, run.outcome = format('%.0f', at), outcome
  run.line = concat({
    run.tick, run.origin, run.fence, run.term, run.number, run.claimed, run.holder, run.tries, run.again, outcome
  }, '|')
end

-- When a run that nobody can tell the end of is tried again: never where a later tick of it has been decided.
local function again_at(run, further, beside, cursor, waiting)
  local retries, first, most = match(further, '^(%d+) (%d+) (%d+)$')
  local tries = tonumber(run.tries)
  if not retries or run.origin ~= 'schedule' or tries > tonumber(retries) then
    return nil
  end
  if not beside and (waiting or tonumber(run.tick) ~= cursor) then
    return nil
  end
  return now + math.min(tonumber(first) * 2 ^ math.min(tries - 1, 40), tonumber(most))
end

-- Settles runs that pause with what their last try came to: a later tick is decided. Gives those that are left.
local function end_pauses(job, ran, open)
  local left = {}
  for _, run in ipairs(open) do
    if run.again ~= '' then
      local error = call('HGET', job, 'e:' .. run.fence) or ''
      call('HDEL', job, 'e:' .. run.fence)
      close(job, ran, run, run.outcome, error)
    else
      left[#left + 1] = run
    end
  end
  return left
end

-- What is open: in how many ms the first of the runs that live elsewhere will have been silent too long, and the runs that pause.
local function found(open, alive)
  local told, left = { '-' }, nil
  for _, run in ipairs(open) do
    if run.again ~= '' then
      told[#told + 1] = concat({ run.fence, run.tick, run.tries, run.again, run.outcome }, '|')
    elseif not is_own(run) and not alive[run.fence] then
      -- It is silent for too long once it is for longer than that.
      local rest = math.max(silence + 1 - (now - run.beat), silence - heard_for(run), 0)
      left = math.min(left or rest, rest)
    end
  end
  told[1] = left and format('%.0f', left) or '-'
  return concat(told, ' ')
end

-- What a try that is tried again may have come to.
local failures = {
  ['ran.error'] = true, ['ran.panic'] = true, ['ran.timed_out'] = true, ['ran.lost'] = true, ['ran.not_started'] = true,
}

-- What is kept about a schedule that is written here: since when, time zones, instance, version.
local function about(since)
  return concat({ since, ARGV[11], match(holder, '^(.*)#') or holder, ARGV[10] }, '|')
end

-- The store has lost the schedule that its leader goes by.
local function write_again(job, schedule, since)
  call('HSET', job, 'schedule', schedule, 'schedule_about', about(since))
end

-- Puts another schedule in force after `at`, unless somebody has moved the cursor or changed the schedule.
local function adopt(job, stored, cursor, planned_from, at, schedule, adopted)
  local now_kept = stored[4]
  if now_kept == adopted then
    -- Who stands for it is written anew; it has been in force as long as before.
    local since = match(call('HGET', job, 'schedule_about') or '', '^(%d+)|') or format('%.0f', cursor)
    call('HSET', job, 'schedule_about', about(since))
    return 'adopted', format('%.0f', cursor)
  elseif cursor > planned_from or tonumber(at) < cursor then
    return 'moved', format('%.0f', cursor)
  elseif now_kept and now_kept ~= schedule then
    return 'other_schedule', ''
  end
  local kept = call('HMGET', job, 'schedule_about', 'schedules')
  local lines = {}
  if now_kept then
    lines[1] = concat({ at, kept[1] or '|||', now_kept }, '|')
  end
  for line in string.gmatch(kept[2] or '', '[^\n]+') do
    if #lines < tonumber(ARGV[12]) then
      lines[#lines + 1] = line
    end
  end
  call('HSET', job, 'cursor', at, 'schedule', adopted, 'schedule_about', about(at), 'schedules', concat(lines, '\n'))
  return 'adopted', at
end

-- What people have asked of the group, read once, and only where there is anything. What cannot be read is passed over.
local pauses, requests, spans, pausing, consumed = {}, {}, {}, false, false

-- From when to when a pause skips what falls due.
local function skips(name, since, ends)
  spans[name] = spans[name] or {}
  table.insert(spans[name], { since = read_instant(since), ends = ends == '' and math.huge or read_instant(ends) })
  pausing = true
end

if state[2] and state[2] ~= '0' then
  local fields = redis.pcall('HGETALL', KEYS[5])
  for f = 1, #fields, 2 do
    local kind, name = match(fields[f], '^([per]):(.*)$')
    if kind == 'p' then
      local gap, since, ends = match(fields[f + 1], '^%d+|(%a+)|(%d+)|(%d*)|')
      if not read_instant(since) or ends ~= '' and not read_instant(ends) then
        gap = nil
      end
      if gap == 'skip' then
        skips(name, since, ends)
      end
      if (gap == 'skip' or gap == 'owed') and (ends == '' or tonumber(ends) > now) then
        pauses[name], pausing = { gap = gap, since = tonumber(since), ends = ends }, true
      end
    elseif kind == 'e' then
      local of_job, since, ends = match(fields[f + 1], '^([^|]*)|%d+|skip|(%d+)|(%d+)|')
      if not read_instant(since) or (read_instant(ends) or 0) < now - 2764800000 then
        -- 32 days old: whoever comes back after that finds missed ticks.
        call('HDEL', KEYS[5], fields[f])
        consumed = true
      else
        skips(of_job, since, ends)
      end
    elseif kind == 'r' then
      local origin, of_job, from, to, done, rest = match(fields[f + 1], '^(%a+)|([^|]+)|(%-?%d+)|(%-?%d+)|(%-?%d*)|(.*)$')
      if origin then
        requests[name] = { origin = origin, job = of_job, from = from, to = to, done = done, rest = rest }
      end
    end
  end
end
local job_keys = #KEYS[5] - #'control' + #'job:'

-- What a pause in force means for a job: 'skip' and since when, or 'owed' and until when. What is owed is not given up by another pause beside.
local function pause_of(name)
  local a, b = pauses[''], pauses[name]
  if not a or not b then
    return a or b
  end
  if a.gap ~= b.gap then
    return a.gap == 'owed' and a or b
  end
  local ends = (a.ends == '' or b.ends == '') and '' or format('%.0f', math.max(tonumber(a.ends), tonumber(b.ends)))
  return { gap = a.gap, since = math.min(a.since, b.since), ends = ends }
end

-- The beginning of the earliest pause, in force or over, that skips this instant.
local function skipped_since(name, instant)
  local found = nil
  for _, of in ipairs({ '', name }) do
    for _, span in ipairs(spans[of] or {}) do
      if span.since <= instant and instant < span.ends then
        found = math.min(found or span.since, span.since)
      end
    end
  end
  return found
end

-- Where a pause begins or ends between two instants.
local function parted_at(name, first, last)
  local found = nil
  for _, of in ipairs({ '', name }) do
    for _, span in ipairs(spans[of] or {}) do
      for _, at in ipairs({ span.since, span.ends }) do
        if first < at and at <= last then
          found = math.min(found or at, at)
        end
      end
    end
  end
  return found
end

-- Whether a request still asks for this run.
local function asks_for(request, name, want, tick)
  return request and request.job == name and request.origin == want
    and tonumber(request.from) <= tick and tick <= tonumber(request.to)
    and (request.done == '' or tonumber(request.done) < tick)
end

-- A run of a request is begun.
local function met(id, more, tick)
  local request = requests[id]
  if request.origin == 'backfill' and more == '+' then
    request.done = tick
    local line = { request.origin, request.job, request.from, request.to, tick, request.rest }
    call('HSET', KEYS[5], 'r:' .. id, concat(line, '|'))
  else
    requests[id], consumed = nil, true
    call('HDEL', KEYS[5], 'r:' .. id)
  end
end

-- The jobs whose ticks stay open, and why: later ticks of theirs must not overtake.
local stopped = {}
local none = {}
local function nothing() end
local answer = { 'yours' }
local at = 13
for i = 1, tonumber(ARGV[8]) do
  local job, ran, passed = KEYS[3 * i + 3], KEYS[3 * i + 4], KEYS[3 * i + 5]
  local number, tick, planned_from, want, overlap = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3], ARGV[at + 4]
  local from_text = ARGV[at + 2]
  local n = tonumber(ARGV[at + 5])
  local alive = n > 0 and {} or none
  for j = at + 6, at + 5 + n do
    alive[ARGV[j]] = true
  end
  local first_passed = at + 7 + n
  local passes = tonumber(ARGV[at + 6 + n])
  local after_passed = first_passed + 4 * passes
  at = after_passed + 4
  local further, schedule, adopted = ARGV[at - 4], ARGV[at - 3], ARGV[at - 2]
  local request, more = match(ARGV[at - 1], '^(%d+)(%+?)$')

  local stored = ask_anew(job, 'HMGET', job, 'cursor', 'open', 'waiting', 'schedule', 'moved', 'keeps')
  local cursor = read_instant(stored[1]) or 0
  if stored[6] then
    -- The records of a schedule that had ended are those of a job again.
    call('PERSIST', ran)
    call('PERSIST', passed)
    call('HDEL', job, 'keeps')
  end
  local open, mine, changed, paused = {}, nil, false, false
  local lines = stored[2]
  for line in lines and lines ~= '' and string.gmatch(lines, '%S+') or nothing do
    local run = { line = line }
    run.tick, run.origin, run.fence, run.term, run.number, run.claimed, run.holder, run.tries, run.again, run.outcome =
      match(line, '^([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(%d+)|(%d*)|(.*)$')
    local dead = nil
    local legible = read_number(run.fence) and read_number(run.number) and read_instant(run.tick) and read_number(run.tries)
      and (run.again == '' or failures[run.outcome] and read_instant(run.again))
    if not legible then
      -- Nobody can settle what is no run; it is dropped with the next change of the job, and nothing waits for it.
      changed = true
    elseif run.again ~= '' then
      paused = true
    elseif is_own(run) then
      if run.number == number then
        mine = run.fence
      elseif not alive[run.fence] and tonumber(run.number) < claiming then
        dead = 'ran.not_started'
      end
    elseif not alive[run.fence] then
      run.beat = read_instant(ask_anew(KEYS[4], 'HGET', KEYS[4], run.fence)) or 0
      if run.beat > now then
        -- The server's clock was set back: the run is silent from now on.
        run.beat = now
        call('HSET', KEYS[4], run.fence, now_text)
      end
      if now - run.beat > silence and heard_for(run) >= silence then
        dead = 'ran.lost'
      end
    end
    local retried_at = dead and further ~= '' and again_at(run, further, overlap == 'allow', cursor, stored[3])
    if retried_at then
      pause(run, dead, retried_at)
      changed, paused = true, true
      open[#open + 1] = run
    elseif dead then
      close(job, ran, run, dead, '')
      changed = true
    elseif legible then
      open[#open + 1] = run
    end
  end

  cursor = math.max(cursor, planned_from)
  local verdict, value, moved_to = nil, '', nil
  local scheduled = want == 'run' or want == 'owed' or want == 'settle'
  local waiting = stored[3]
  local name = (pausing or request) and string.sub(job, job_keys + 1)
  local halt = pausing and (scheduled or want == 'waited' or want == 'backfill') and pause_of(name)
  local skipped, parted = nil, nil
  if pausing and scheduled then
    skipped = skipped_since(name, tonumber(tick))
    for p = first_passed, after_passed - 1, 4 do
      parted = parted or parted_at(name, tonumber(ARGV[p + 1]), tonumber(ARGV[p + 2]))
    end
  elseif halt and want == 'waited' then
    -- It fell due long ago, and would be run now.
    skipped = halt.since
  end
  local stop = scheduled and stopped[job]
  if waiting and not (match(waiting, '^%d+$') and read_instant(waiting)) then
    -- No tick that could be run, or recorded.
    call('HDEL', job, 'waiting')
    waiting = nil
  end
  if mine then
    verdict, value = 'won', mine
  elseif stored[5] and (scheduled or want == 'adopt') then
    -- It goes on under another name, which the asker has not heard of.
    verdict = 'other_schedule'
  elseif want == 'adopt' then
    verdict, value = adopt(job, stored, cursor, planned_from, tick, schedule, adopted)
    if verdict == 'moved' and waiting then
      value = value .. ' ' .. waiting
    end
  elseif scheduled and (cursor > planned_from or tonumber(tick) <= cursor) then
    -- Whoever moved it may not have heard that a tick waits.
    verdict, value = 'moved', format('%.0f', cursor) .. (waiting and ' ' .. waiting or '')
  elseif scheduled and stored[4] and schedule ~= '' and stored[4] ~= schedule then
    verdict = 'other_schedule'
  elseif want == 'waited' and waiting ~= tick then
    verdict = 'passed'
  elseif want == 'look' then
    verdict, value = 'looked', found(open, alive)
  elseif want == 'retry' then
    local run = nil
    for _, other in ipairs(open) do
      if other.fence == from_text and other.again ~= '' then
        run = other
      end
    end
    if not run then
      verdict = 'passed'
    elseif tonumber(run.again) > now then
      verdict, value = 'early', format('%.0f', tonumber(run.again) - now)
    else
      call('HDEL', job, 'e:' .. run.fence)
      fence = fence + 1
      minted, changed = true, true
      verdict, value = 'won', format('%.0f', fence)
      run.line = concat({ run.tick, run.origin, value, term, number, now_text, holder, format('%.0f', tonumber(run.tries) + 1), '', '' }, '|')
      begun[value] = true
    end
  elseif request and not asks_for(requests[request], name, want, tonumber(tick)) then
    verdict = 'gone'
  elseif stop then
    verdict, value = stop[1], stop[2]
  elseif halt and (halt.gap == 'owed' or want == 'backfill') then
    verdict, value = 'held', halt.gap == 'owed' and halt.ends or ''
    if scheduled then
      stopped[job] = { verdict, value }
    end
  elseif parted then
    -- Whoever planned it does not know of the pause.
    verdict, value = 'split', format('%.0f', parted)
    if scheduled then
      stopped[job] = { verdict, value }
    end
  elseif skipped then
    verdict, value = 'paused', format('%.0f', skipped)
    if paused and overlap ~= 'allow' then
      open = end_pauses(job, ran, open)
      changed = true
    end
    for p = first_passed, after_passed - 1, 4 do
      pass(job, passed, ARGV[p + 1], ARGV[p + 2], ARGV[p + 3], scheduled and skipped_since(name, tonumber(ARGV[p + 1])) and 'paused' or ARGV[p])
    end
    if want ~= 'settle' then
      if waiting then
        pass(job, passed, waiting, waiting, '1', 'paused')
        call('HDEL', job, 'waiting')
      end
      if scheduled then
        pass(job, passed, tick, tick, '1', 'paused')
      end
    end
    moved_to = scheduled and tick
  else
    if paused and overlap ~= 'allow' and (scheduled or want == 'waited') then
      open = end_pauses(job, ran, open)
      changed = true
    end
    local left = #open
    if want == 'run' and overlap == 'replace' and left > 0 then
      open = replace(job, ran, open)
      changed = changed or #open < left
      left = #open
    end
    if (want == 'run' or request) and overlap == 'allow' then
      left = 0
      -- The runs of a past span come one after another, whatever the policy.
      for _, run in ipairs(want == 'backfill' and open or none) do
        left = left + (run.origin == 'backfill' and 1 or 0)
      end
    end
    if left > 0 and want == 'run' and overlap == 'replace' then
      verdict = 'replacing'
    elseif left > 0 and want ~= 'run' and want ~= 'settle' then
      verdict = 'busy'
    else
      for p = first_passed, after_passed - 1, 4 do
        local outcome = pausing and scheduled and skipped_since(name, tonumber(ARGV[p + 1])) and 'paused' or ARGV[p]
        local goes_on = outcome == 'blackout' and p == first_passed and prolong(job, passed, ARGV[p + 2], ARGV[p + 3], cursor)
        if not goes_on then
          pass(job, passed, ARGV[p + 1], ARGV[p + 2], ARGV[p + 3], outcome)
        end
      end
      if waiting and want ~= 'waited' and scheduled then
        -- A later tick stands for it; one that is only settled has passed as well.
        if want ~= 'settle' then
          pass(job, passed, waiting, waiting, '1', 'missed.coalesced')
          call('HDEL', job, 'waiting')
        end
      end
      if want == 'settle' then
        verdict = 'passed'
      elseif left > 0 and overlap == 'wait' then
        verdict = 'waits'
        call('HSET', job, 'waiting', tick)
      elseif left > 0 then
        verdict = 'overlapped'
        pass(job, passed, tick, tick, '1', 'overlap_skipped')
      else
        fence = fence + 1
        minted = true
        value = format('%.0f', fence)
        verdict = 'won'
        local origin = (scheduled or want == 'waited') and 'schedule' or want
        open[#open + 1] = { line = concat({ tick, origin, value, term, number, now_text, holder, '1', '', '' }, '|') }
        changed = true
        begun[value] = true
        if want == 'waited' then
          call('HDEL', job, 'waiting')
        end
        if request then
          met(request, more, tick)
        end
      end
      moved_to = scheduled and tick
    end
  end
  if moved_to and not stored[4] and schedule ~= '' then
    write_again(job, schedule, from_text)
  end
  local lines = {}
  if changed then
    for at_run, run in ipairs(open) do
      lines[at_run] = run.line
    end
  end
  if moved_to and changed then
    call('HSET', job, 'cursor', moved_to, 'open', concat(lines, ' '))
  elseif moved_to then
    call('HSET', job, 'cursor', moved_to)
  elseif changed then
    call('HSET', job, 'open', concat(lines, ' '))
  end
  answer[#answer + 1] = verdict
  answer[#answer + 1] = value
end
if consumed then
  call('HSET', KEYS[2], 'controlled', call('HLEN', KEYS[5]))
end
if minted then
  call('SET', KEYS[3], format('%.0f', fence))
  local beats = {}
  for value in pairs(begun) do
    beats[#beats + 1] = value
    beats[#beats + 1] = now_text
  end
  if #beats > 0 then
    ask_anew(KEYS[4], 'HSET', KEYS[4], unpack(beats))
  end
end
return answer
