-- Claims ticks: checks the lease, settles dead runs, settles what has passed, moves the cursor, mints the fence and
-- writes the run's start, all in one step.
-- KEYS: 1 lease, 2 state, 3 fence, 4 beats, then for each claim: job, ran, passed
-- ARGV: 1 holder, 2 term, 3 highest fence known, 4 silence ms, 5 connected ms, 6 records kept, 7 lowest number of a claim
--       whose answer may not be known yet, 8 number of claims;
--       then for each claim: number, tick ms, cursor ms, want, n, n fences, m, m times (reason, first, last, count)
-- Gives: 'yours' and for each claim a verdict and a value; or 'not_yours'
local call, format, concat, match = redis.call, string.format, table.concat, string.match
local held = redis.pcall('GET', KEYS[1])
if held ~= ARGV[1] or call('HGET', KEYS[2], 'term') ~= ARGV[2] then
  return { 'not_yours' }
end
local holder, term = ARGV[1], ARGV[2]
local silence, connected = tonumber(ARGV[4]), tonumber(ARGV[5])
local kept = tonumber(ARGV[6])
local claiming = tonumber(ARGV[7])
local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
local now_text = format('%.0f', now)
local fence = math.max(tonumber(call('GET', KEYS[3])) or 0, micros - 1, tonumber(ARGV[3]))
-- The runs begun here, by fence. Their first beats are written together: each call out of the script costs.
local begun = {}
local minted = false

local function record(key, line)
  if call('LPUSH', key, line) > kept then
    call('LTRIM', key, 0, kept - 1)
  end
end

local function count(job, origin, outcome, by)
  call('HINCRBY', job, (origin == 'schedule' and 'n:' or 'x:') .. outcome, by)
end

-- A run that its runner cannot tell the end of any more.
local function settle_dead(job, ran, run, outcome)
  call('HDEL', KEYS[4], run.fence)
  begun[run.fence] = nil
  record(ran, concat({ run.tick, run.tick, '1', outcome, run.origin, run.fence, run.term, run.holder, now_text, run.claimed, '' }, '|'))
  count(job, run.origin, outcome, 1)
end

local none = {}
local function nothing() end
local answer = { 'yours' }
local at = 9
for i = 1, tonumber(ARGV[8]) do
  local job, ran, passed = KEYS[3 * i + 2], KEYS[3 * i + 3], KEYS[3 * i + 4]
  local number, tick, planned_from, want = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3]
  local n = tonumber(ARGV[at + 4])
  local alive = n > 0 and {} or none
  for j = at + 5, at + 4 + n do
    alive[ARGV[j]] = true
  end
  local first_passed = at + 6 + n
  local passes = tonumber(ARGV[at + 5 + n])
  at = first_passed + 4 * passes

  local stored = call('HMGET', job, 'cursor', 'open')
  local cursor = math.max(tonumber(stored[1]) or 0, planned_from)
  local open, mine, changed = {}, nil, false
  local lines = stored[2]
  for line in lines and lines ~= '' and string.gmatch(lines, '%S+') or nothing do
    local run = {}
    run.tick, run.origin, run.fence, run.term, run.number, run.claimed, run.holder =
      match(line, '^([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.*)$')
    local dead = nil
    if run.term == term then
      if run.number == number then
        mine = run.fence
      elseif not alive[run.fence] and tonumber(run.number) < claiming then
        dead = 'ran.not_started'
      end
    elseif not alive[run.fence] then
      local beat = tonumber(call('HGET', KEYS[4], run.fence)) or 0
      if now - beat > silence and connected >= silence then
        dead = 'ran.lost'
      end
    end
    if dead then
      settle_dead(job, ran, run, dead)
      changed = true
    else
      open[#open + 1] = line
    end
  end

  local verdict, value, moved_to = nil, '', nil
  local scheduled = want == 'run' or want == 'owed' or want == 'settle'
  if mine then
    verdict, value = 'won', mine
  elseif scheduled and (cursor > planned_from or tonumber(tick) <= cursor) then
    verdict, value = 'moved', format('%.0f', cursor)
  elseif #open > 0 and want ~= 'run' and want ~= 'settle' then
    verdict = 'busy'
  else
    for p = first_passed, first_passed + 4 * passes - 1, 4 do
      local outcome = ARGV[p]
      record(passed, concat({ ARGV[p + 1], ARGV[p + 2], ARGV[p + 3], outcome, 'schedule', '0', term, holder, now_text, now_text, '' }, '|'))
      count(job, 'schedule', outcome, ARGV[p + 3])
    end
    if want == 'settle' then
      verdict = 'passed'
    elseif #open > 0 then
      verdict = 'overlapped'
      record(passed, concat({ tick, tick, '1', 'overlap_skipped', 'schedule', '0', term, holder, now_text, now_text, '' }, '|'))
      count(job, 'schedule', 'overlap_skipped', 1)
    else
      fence = fence + 1
      minted = true
      value = format('%.0f', fence)
      verdict = 'won'
      local origin = scheduled and 'schedule' or want
      open[#open + 1] = concat({ tick, origin, value, term, number, now_text, holder }, '|')
      changed = true
      begun[value] = true
    end
    if scheduled then
      moved_to = tick
    end
  end
  if moved_to and changed then
    call('HSET', job, 'cursor', moved_to, 'open', concat(open, ' '))
  elseif moved_to then
    call('HSET', job, 'cursor', moved_to)
  elseif changed then
    call('HSET', job, 'open', concat(open, ' '))
  end
  answer[#answer + 1] = verdict
  answer[#answer + 1] = value
end
if minted then
  call('SET', KEYS[3], format('%.0f', fence))
  local beats = {}
  for value in pairs(begun) do
    beats[#beats + 1] = value
    beats[#beats + 1] = now_text
  end
  if #beats > 0 then
    call('HSET', KEYS[4], unpack(beats))
  end
end
return answer
