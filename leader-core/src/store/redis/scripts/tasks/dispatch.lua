-- Settles attempts that have been silent, moves due tasks to the streams of their lanes, and keeps what has ended within its bounds.
-- KEYS: 2 lease, 3 state
-- ARGV: 1 holder, 2 term, 3 the most that are moved, 4 the most that a stream holds, 5 silence ms, 6 connected ms, 7 losses that a task may
--       have; 8 how many that have ended are kept and 9 for how many ms, 10 how many that are dead and 11 for how many ms
-- Gives: 'yours', the time in ms, how many were moved, when the first of them was due, when the next is, whether a stream is full, when an
--        attempt will have been silent, then for each that is lost: task, lane, attempt, holder, whether it is dead; or 'not_yours'
if redis.pcall('GET', KEYS[2]) ~= ARGV[1] or call('HGET', KEYS[3], 'term') ~= ARGV[2] then
  return { 'not_yours' }
end
look_at_keys({ 'tasks', 'attempts', 'cancels', 'unique', 'unfinished' }, { 'running', 'lanes', 'dead' })
local most, room, silence = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local answer = { 'yours', now_text }

if tonumber(ARGV[6]) >= silence then
  for _, task in ipairs(call('ZRANGE', running, '-inf', text_of(now - silence), 'BYSCORE', 'LIMIT', '0', '100')) do
    local s, record = read_state(call('HGET', attempts, task) or ''), call('HGET', tasks, task)
    local lane, _, _, generation, unique = read_head(record or '')
    if not lane then
      forget(task)
    elseif not s then
      -- Of its attempt nothing can be read, nor will it be heard of: there is to be another.
      s = new_state(record)
      s.due = now_text
      call('HSET', attempts, task, write_state(s))
      wait(lane, task, now)
      call('ZREM', running, task)
    elseif s.status ~= 'r' then
      call('ZREM', running, task)
    else
      add_history(s, 'lost', 'the worker fell silent')
      s.losses = text_of(s.losses + 1)
      local dead, cancelled = tonumber(s.losses) > tonumber(ARGV[7]), call('HEXISTS', prefix .. 'cancels', task) == 1
      if cancelled then
        call('HDEL', prefix .. 'cancels', task)
        keep_ended({ task, as_ended('cancelled', s) }, tonumber(ARGV[8]))
        call('HDEL', tasks, task)
        call('HDEL', attempts, task)
        count('cancelled', 1)
      elseif dead then
        bury(task, s)
      else
        s.status, s.due = 'w', now_text
        call('HSET', attempts, task, write_state(s))
        wait(lane, task, now)
      end
      call('ZREM', running, task)
      count('lost', 1)
      if cancelled or dead then
        free_unique(unique, task)
        unfinished(generation, -1)
      end
      for _, word in ipairs({ task, lane, s.attempt, s.holder, dead and not cancelled and '1' or '' }) do
        answer[#answer + 1] = word
      end
    end
  end
end

local moved, first_due, full, next_due = 0, nil, false, nil
local function sooner(due)
  if due and (not next_due or due < next_due) then
    next_due = due
  end
end
local due_lanes = call('ZRANGE', prefix .. 'lanes', '-inf', now_text, 'BYSCORE')
-- By priority, which a lane begins with.
table.sort(due_lanes)
for _, lane in ipairs(due_lanes) do
  local stream, minutes = prefix .. 'stream:' .. lane, prefix .. 'minutes:' .. lane
  local free = room - own('XLEN', stream)
  local of_lane, first = 0, nil
  while of_lane < free and moved < most do
    local minute = own('ZRANGE', minutes, '0', '0')[1]
    if not minute then
      break
    end
    local waiting = prefix .. 'due:' .. lane .. ':' .. minute
    local wanted = math.min(free - of_lane, most - moved)
    local some
    if ((tonumber(minute) or 0) + 1) * 60000 <= now then
      -- All of a minute that is over are due; by rank is cheaper than by time.
      some = own('ZRANGE', waiting, '0', text_of(wanted - 1))
    else
      some = own('ZRANGE', waiting, '-inf', now_text, 'BYSCORE', 'LIMIT', '0', text_of(wanted))
    end
    if #some == 0 then
      if call('EXISTS', waiting) == 1 then
        break
      end
      call('ZREM', minutes, minute)
    else
      if not first then
        first = tonumber(call('ZSCORE', waiting, some[1]))
      end
      for i = 1, #some do
        call('XADD', stream, '*', 'k', some[i])
      end
      call('ZREMRANGEBYRANK', waiting, '0', text_of(#some - 1))
      of_lane, moved = of_lane + #some, moved + #some
    end
  end
  if first and (not first_due or first < first_due) then
    first_due = first
  end
  -- Where nothing was found though something is due, the minutes are looked through.
  local looks = of_lane > 0 or (free > 0 and moved < most)
  local due = looks and look_at(lane) or tonumber(call('ZSCORE', prefix .. 'lanes', lane))
  if of_lane < free then
    sooner(due)
  elseif due and due <= now then
    full = true
  elseif due then
    sooner(due)
  end
  if of_lane > 0 then
    own('SADD', prefix .. 'seen', lane)
    ring(lane, of_lane)
  end
end
if moved > 0 then
  count('dispatched', moved)
end
sooner(tonumber(call('ZRANGE', prefix .. 'lanes', '(' .. now_text, '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')[2]))

-- What has ended goes when the newest of its part is too old. A part that has grown for a tenth of that time grows no longer.
local e = parts_of_ended()
local length = own('HLEN', part_of(e.last))
if length > 0 or e.first < e.last then
  local kept_for = ARGV[8] == '0' and 0 or tonumber(ARGV[9])
  local since = number_of(call('HGET', prefix .. 'ended', 't' .. text_of(e.last)))
  if not since then
    redis.pcall('HSET', prefix .. 'ended', 't' .. text_of(e.last), now_text)
    since = now
  end
  if length > 0 and now - since >= kept_for / 10 then
    close_part(e, length)
  end
  -- The next part was begun when this one had its last.
  while e.first < e.last and now - (number_of(call('HGET', prefix .. 'ended', 't' .. text_of(e.first + 1))) or 0) >= kept_for do
    drop_part(e)
  end
end
local dead = prefix .. 'dead'
-- The oldest of them: those that are too many, and those that are too old.
local over = math.max(call('ZCARD', dead) - tonumber(ARGV[10]), call('ZCOUNT', dead, '-inf', text_of(now - tonumber(ARGV[11]))))
local gone = over > 0 and call('ZRANGE', dead, '0', text_of(math.min(1000, over) - 1)) or {}
if #gone > 0 then
  call('ZREM', dead, unpack(gone))
  call('HDEL', tasks, unpack(gone))
  call('HDEL', attempts, unpack(gone))
  forget_ended(gone)
end

local silent = call('ZRANGE', running, '0', '0', 'WITHSCORES')[2]
local function told(at)
  return at and instant_of(at) or ''
end
local head = { text_of(moved), told(first_due), told(next_due), full and '1' or '', told(silent and tonumber(silent) + silence) }
for i = #head, 1, -1 do
  table.insert(answer, 3, head[i])
end
return answer
